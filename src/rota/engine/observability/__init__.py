"""Logs, meters and observers of the engine."""
