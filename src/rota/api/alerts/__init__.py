"""Routes about expectations and notifications."""
