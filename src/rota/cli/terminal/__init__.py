"""Input and output of commands: tables, formats, progress, errors, confirmation."""
