"""Runs as values: states decided, options, claims, dependencies, search, redaction."""
