"""Verbs of the Python client. Everything but the engine reaches the store through them."""
