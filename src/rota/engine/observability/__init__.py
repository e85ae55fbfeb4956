"""Logs, metrics and observers of the engine."""
