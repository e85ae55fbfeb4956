"""Run handlers at once, in the caller, without a database."""
