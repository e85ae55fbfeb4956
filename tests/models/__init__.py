"""TLA+ models of leases and of planning, and what they allow: relations that every simulated world is checked with."""
