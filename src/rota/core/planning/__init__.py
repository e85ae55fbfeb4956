"""Decide what becomes of due plan times; simulate it."""
