"""How many transactions a request may take."""

from __future__ import annotations

from tests.conformance.case import Case

MOST = 2
BATCHES = {
    "cancel_many": "as many runs as match, a batch at a time",
    "retry_many": "the same",
    "purge": "the same",
    "change_jobs": "a transaction a job",
}
"""Verbs that work through as many rows as there are."""
OVER = {
    "enqueue: a run with every option": (3, "whether there are quotas is looked up by each process once in a while"),
    "data_jobs.delete: with force": (4, "it cancels runs in batches between its check and the delete"),
    "data_jobs.replace: with a schedule": (5, "it reads job, schedule and surroundings one after the other"),
    "data_jobs.update: words of its schedule": (5, "the same"),
}
"""Cases that take more than two transactions, how many, and why. A number may only fall; nothing may be added."""


def too_many(case: Case, transactions: int) -> list[str]:
    """Say that the request of a case took too many transactions, if it did."""
    most, _ = OVER.get(str(case), (MOST, ""))
    return [] if transactions <= most or case.verb in BATCHES else [f"{transactions} transactions, not {most}"]
