"""Tokens and sessions in the database."""
