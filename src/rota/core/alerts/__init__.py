"""Expectations, notifications and the signals between them, as values."""
