"""Progress, log lines and steps in the database."""
