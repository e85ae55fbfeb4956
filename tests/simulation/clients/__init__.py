"""Simulated clients: an entry of a script becomes calls of rota's client."""
