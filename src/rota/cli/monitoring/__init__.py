"""`rota error-groups`, `rota explain`, `rota audit`."""
