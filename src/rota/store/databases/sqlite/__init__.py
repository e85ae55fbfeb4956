"""SQLite: connections, threads, and the checks of the file."""
