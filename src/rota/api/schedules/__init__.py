"""Routes about schedules."""
