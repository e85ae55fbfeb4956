"""Occurrences, backfill, explanations and the audit trail in the database."""
