"""Verbs about jobs, queues and data jobs."""
