"""Statistics, charts, timeline, overview and error groups in the database."""
