"""`rota schedule …`, `rota cron`, `rota import`."""
