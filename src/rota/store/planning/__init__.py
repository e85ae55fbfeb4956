"""Plan due schedules: lock, decide in core, write the runs."""
