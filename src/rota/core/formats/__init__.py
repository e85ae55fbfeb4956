"""Formats of other schedulers, read as schedule documents."""
