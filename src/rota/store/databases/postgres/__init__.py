"""PostgreSQL: the pool, hot statements, LISTEN/NOTIFY, stuck connections."""
