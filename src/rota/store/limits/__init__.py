"""Admission, slots, rates and quotas in the database."""
