"""Measures rota beside its peers, on this machine, in one run: `python -m benchmarks queue`."""
