"""Expectations, notifications and signals in the database."""
