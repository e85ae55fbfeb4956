"""`rota errors`, `rota explain`, `rota audit`."""
