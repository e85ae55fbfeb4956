"""The loops of a process, each with a `step()`: planner, promoter, reaper, janitor and others."""
