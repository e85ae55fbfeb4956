"""Statistics, charts, timeline, overview, error groups and the doctor, as values."""
