"""The worker: claim, execute, heartbeat, report."""
