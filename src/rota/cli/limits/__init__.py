"""`rota quota …`."""
