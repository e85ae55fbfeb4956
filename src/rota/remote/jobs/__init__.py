"""Verbs about jobs and data jobs, over HTTP."""
