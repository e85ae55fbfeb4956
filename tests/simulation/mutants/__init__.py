"""Planted bugs: each is a mistake that a good engineer makes, and the simulation has to find it."""
