"""`rota migrate`, `rota promote`, `rota doctor`, `rota token`, `rota export`."""
