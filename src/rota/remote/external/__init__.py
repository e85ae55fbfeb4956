"""Verbs of external workers, over HTTP."""
