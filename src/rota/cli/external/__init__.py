"""`rota run complete` and `rota run fail`, for external runs."""
