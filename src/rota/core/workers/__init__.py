"""Workers as values: who they are, requirements of runs, replicas."""
