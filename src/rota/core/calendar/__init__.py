"""When a trigger fires: cron, intervals, zones, windows."""
