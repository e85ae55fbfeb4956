"""Schedules as values: definitions, policies, documents, revisions."""
