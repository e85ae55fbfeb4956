"""Who calls, and what of a run they may see."""
