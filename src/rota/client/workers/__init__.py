"""Verbs about workers."""
