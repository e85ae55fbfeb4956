"""Calendars: triggers, zones, windows and the times that they name."""
