"""Progress that a run reports: steps, notes, and the exceptions by which a handler controls its run."""
