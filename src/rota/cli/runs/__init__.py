"""`rota run …`."""
