"""External runs as values: what an external worker receives and may report."""
