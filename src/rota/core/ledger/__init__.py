"""Ledger: account for every plan time and every change (occurrences, backfill, explanations, audit events)."""
