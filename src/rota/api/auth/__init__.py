"""Authentication, and redaction of what callers may not see."""
