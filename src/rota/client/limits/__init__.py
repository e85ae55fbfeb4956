"""Verbs about quotas."""
