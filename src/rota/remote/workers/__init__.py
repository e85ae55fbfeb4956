"""Verbs about workers, over HTTP."""
