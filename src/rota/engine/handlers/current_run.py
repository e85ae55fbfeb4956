"""Context variables with the current run and worker, so that log lines can name them."""

from __future__ import annotations

from contextvars import Context, ContextVar, copy_context

from rota.core.runs.claim import Claim

current_run: ContextVar[Claim | None] = ContextVar("rota_current_run", default=None)
"""The claim, set for each call of a handler in the context it runs in; threads of handlers inherit it."""


current_worker: ContextVar[str | None] = ContextVar("rota_current_worker", default=None)
"""The worker's id, set once in the context that all its attempts begin with."""


def worker_context(worker_id: str) -> Context:
    """Return a copy of the current context for the attempts of this worker."""
    context = copy_context()
    context.run(current_worker.set, worker_id)
    return context


def claimed_run() -> Claim:
    """Return the claim of the current run. For middleware and rota's own handlers, which have no context object."""
    claim = current_run.get()
    assert claim is not None, "called outside of a run"
    return claim


class RunFields(dict[str, object]):
    """Fields that identify a run in a log line: `log.info("…", extra=RunFields(claim))`."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(run_id=claim.run_id, job=claim.job, attempt=claim.attempt, fence=claim.fence)


def run_fields() -> dict[str, object]:
    """Return the fields of the current run and worker; empty outside of handlers."""
    claim, worker = current_run.get(), current_worker.get()
    fields: dict[str, object] = {} if claim is None else RunFields(claim)
    return fields if worker is None else {**fields, "worker": worker}
