"""Metrics and traces: the parts that every layer may use."""
