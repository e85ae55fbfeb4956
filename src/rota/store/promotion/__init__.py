"""Move a SQLite file to PostgreSQL."""
