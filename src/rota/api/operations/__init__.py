"""What routes are made of: roles, queries, bodies, answers, cursors."""
