"""Test harness: an app driven by hand, with its clock, workers and faults."""
