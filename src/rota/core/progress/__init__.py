"""What a run reports while it works: steps, notes, and the exceptions that steer it."""
