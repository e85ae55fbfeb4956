"""Small values that every layer uses: durations, instants, sizes, names, scopes, JSON, the clock."""
