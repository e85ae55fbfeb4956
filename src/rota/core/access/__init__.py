"""Roles and identities."""
