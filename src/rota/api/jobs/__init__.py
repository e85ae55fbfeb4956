"""Routes about jobs and queues."""
