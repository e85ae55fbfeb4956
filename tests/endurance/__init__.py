"""Endurance: a mixed load at a moderate rate for as long as you like, and what grows meanwhile. No pytest tests."""
