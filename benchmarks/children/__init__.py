"""What runs in the measured processes: one module per Python contender, all behind the same five verbs."""
