"""Routes of the worker protocol."""
