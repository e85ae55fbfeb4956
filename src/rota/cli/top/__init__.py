"""`rota top`: a live view on a terminal."""
