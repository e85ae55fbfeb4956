"""Verbs about tokens, over HTTP."""
