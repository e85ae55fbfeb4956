"""Enqueue when Django's transaction has been committed, and not at all if it is rolled back."""

from __future__ import annotations

import copy
from typing import Any, ParamSpec

from rota.job import Job

P = ParamSpec("P")


def on_commit(job: Job[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
    """`on_commit(send_receipt, order=7)`; outside of a transaction it is enqueued at once.

    A payload that the job does not take is refused here, where it can still be rolled back.
    """
    from django.db import transaction

    order = copy.deepcopy(job.order(*args, **kwargs))  # what is changed until then is not meant
    job.app.prepare_locally(order)
    transaction.on_commit(lambda: job.app.blocking.enqueue(order))
