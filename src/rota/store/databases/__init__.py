"""The two databases behind one interface, and the compiler of SQL statements."""
