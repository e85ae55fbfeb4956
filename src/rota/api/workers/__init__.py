"""Routes about workers."""
