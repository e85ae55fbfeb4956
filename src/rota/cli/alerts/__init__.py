"""`rota expect …` and `rota notify …`."""
