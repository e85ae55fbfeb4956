"""`rota expectation …` and `rota notification …`."""
