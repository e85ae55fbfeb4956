"""Runs in the database: enqueue, read, report, cancel, end, prune."""
