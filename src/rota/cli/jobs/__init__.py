"""`rota job …` and `rota queue …`."""
