"""Metrics and traces that every layer may use."""
