"""Data for dashboards, over HTTP."""
