"""Scenes: a few runs, schedules, jobs or limits, and operations that touch the same rows of them."""
