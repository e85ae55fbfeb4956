"""Enqueue when Django's transaction commits, and not at all if it is rolled back."""

from __future__ import annotations

import copy
from typing import Any, ParamSpec

from rota.job import Job

P = ParamSpec("P")


def on_commit(job: Job[P, Any], *args: P.args, **kwargs: P.kwargs) -> None:
    """Enqueue on commit: `on_commit(send_receipt, order=7)`. Outside of a transaction, enqueue at once.

    An invalid payload is refused here, where the transaction can still be rolled back.
    """
    from django.db import transaction

    order = copy.deepcopy(job.order(*args, **kwargs))  # later changes of the arguments must not count
    job.app.prepare_locally(order)
    transaction.on_commit(lambda: job.app.blocking.enqueue(order))
