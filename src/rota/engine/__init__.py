"""Loops and what they drive: worker, heartbeat, reaper, promoter, janitor."""
