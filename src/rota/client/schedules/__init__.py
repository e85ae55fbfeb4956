"""Verbs about schedules: create, update, simulate, history."""
