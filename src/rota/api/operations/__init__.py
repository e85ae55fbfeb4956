"""Building blocks of routes: roles, queries, bodies, responses."""
