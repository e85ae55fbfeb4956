"""Verbs about runs: enqueue, and bulk cancel and retry."""
