"""Verbs about expectations and notifications, over HTTP."""
