"""What commands print and ask: tables, formats, progress, errors, confirmation."""
