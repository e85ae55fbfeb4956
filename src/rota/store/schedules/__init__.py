"""Schedules in the database: change, trigger, pause, follow other jobs."""
