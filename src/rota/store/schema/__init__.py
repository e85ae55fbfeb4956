"""Migrations, and which programs work with which schema."""
