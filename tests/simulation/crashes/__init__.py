"""Crash points: small scenarios, each run again with one database operation struck, each operation in turn."""
