"""Explorer of transactions that run inside each other: every order of their statements and commits, on PostgreSQL."""
