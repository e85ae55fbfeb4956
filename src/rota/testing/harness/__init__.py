"""Drive an app by hand: clock, workers, faults."""
