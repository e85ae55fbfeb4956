"""Verbs about quotas, over HTTP."""
