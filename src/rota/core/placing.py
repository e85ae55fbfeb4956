"""A run as it stands once it was enqueued: what its table would tell, without asking it."""

from __future__ import annotations

import msgspec

from rota.core.model import Enqueued, NewRun, Run
from rota.core.scope import Scope
from rota.core.states import RunState
from rota.instants import instant

_decoded = msgspec.json.decode


def as_made(run: NewRun, enqueued: Enqueued) -> Run | None:
    """None if only the database knows: it was there already, or a limit, a need or another run decides what it is."""
    created_at, run_at = enqueued.created_micros, enqueued.run_micros
    if not enqueued.created or created_at is None or run_at is None:
        return None
    if run.gates or run.after or run.staff or run.pipeline or run.retry_of:
        return None
    return Run(
        id=run.id,
        job=run.job,
        job_version=run.job_version,
        queue=run.queue,
        priority=run.priority,
        scope=Scope(run.scope_kind, run.scope_id),
        key=run.key,
        state=RunState.SCHEDULED if run_at > created_at else RunState.QUEUED,
        reason=None,
        fence=0,
        attempt=0,
        max_attempts=run.max_attempts,
        payload=_decoded(run.payload),
        result=None,
        error=None,
        created_at=instant(created_at),
        run_at=instant(run_at),
        started_at=None,
        finished_at=None,
        retry_of=None,
        worker_id=None,
        tags=tuple(_decoded(run.tags)) if run.tags else (),
        metadata=_decoded(run.metadata) if run.metadata else {},
    )
