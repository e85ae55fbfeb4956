"""Routes about tokens and browser sessions."""
