"""Isolation: handlers in child processes."""
