"""`rota workers …`."""
