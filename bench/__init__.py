"""Measures rota beside its peers, on this machine, in one run: `python -m bench queue`."""
