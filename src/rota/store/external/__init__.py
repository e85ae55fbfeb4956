"""External runs in the database: handover, claims, reports, deadlines."""
