"""Verbs about expectations and notifications."""
