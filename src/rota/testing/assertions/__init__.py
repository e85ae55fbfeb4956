"""Assertions about runs and schedules."""
