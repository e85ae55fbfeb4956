"""The simulated world: virtual time, processes, faults on the way to a database, and observers of every commit."""
