"""Data for dashboards: overview, charts, timeline, error groups."""
