"""Concurrency limits, rates and quotas as values."""
