"""Verbs of external workers."""
