"""A simulated disk under SQLite: full disks, power cuts, and processes that die inside a transaction."""
