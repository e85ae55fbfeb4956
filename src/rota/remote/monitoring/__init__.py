"""Questions for dashboards, over HTTP."""
