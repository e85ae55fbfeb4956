"""Verbs about schedules, over HTTP."""
