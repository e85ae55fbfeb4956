"""The run that the code around it works for, so that log lines and the like can say which."""

from __future__ import annotations

from contextvars import Context, ContextVar, copy_context

from rota.core.runs.claim import Claim

current_run: ContextVar[Claim | None] = ContextVar("rota_current_run", default=None)
"""Set around each call of a handler, in the context that it runs in; threads of handlers inherit it."""


current_worker: ContextVar[str | None] = ContextVar("rota_current_worker", default=None)
"""The worker's id, set once in the context that all its attempts are begun with."""


def worker_context(worker_id: str) -> Context:
    """A copy of the current context, for what this worker does."""
    context = copy_context()
    context.run(current_worker.set, worker_id)
    return context


def claimed_run() -> Claim:
    """For handlers of our own, which need no more than this."""
    claim = current_run.get()
    assert claim is not None, "called outside of a run"
    return claim


class RunFields(dict[str, object]):
    """What names a run in a log line: `log.info("…", extra=RunFields(claim))`."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(run_id=claim.run_id, job=claim.job, attempt=claim.attempt, fence=claim.fence)


def run_fields() -> dict[str, object]:
    """Of the run that is being worked for, and the worker that does it; empty outside of handlers."""
    claim, worker = current_run.get(), current_worker.get()
    known: dict[str, object] = {} if claim is None else RunFields(claim)
    return known if worker is None else {**known, "worker": worker}
