"""TLA+ models of leases and of planning, and what they allow: a relation that every simulated world is checked with."""
