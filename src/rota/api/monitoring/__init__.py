"""Routes for dashboards, exports, health and changes."""
