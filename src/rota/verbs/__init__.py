"""Verbs: each is declared once, beside the client's method, for REST, remote clients, blocking clients and commands."""
