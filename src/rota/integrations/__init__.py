"""Small modules for other libraries, each imported only by those who use it."""
