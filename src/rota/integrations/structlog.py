"""structlog: lines that a handler logs name its run, `install(app)`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from structlog.contextvars import bound_contextvars

from rota.app import Rota
from rota.registry.hooks.middleware import Call


def install(app: Rota) -> None:
    """Bind `run_id`, `job` and `attempt` while a handler runs.

    `structlog.contextvars.merge_contextvars` must be among your processors.
    """

    def around(call: Call) -> Iterator[None]:
        with bound_contextvars(run_id=call.run_id, job=call.job, attempt=call.attempt):
            yield

    async def around_coroutine(call: Call) -> AsyncIterator[None]:
        with bound_contextvars(run_id=call.run_id, job=call.job, attempt=call.attempt):
            yield

    app.around(around)
    app.around(around_coroutine)
