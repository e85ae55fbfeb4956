"""The loops of a process, each a `step()`: planner, promoter, reaper, janitor and others."""
