"""A run as it stands once it was enqueued: what its table would tell, without asking it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from rota.core.model import Enqueued, NewRun, Run
from rota.core.scope import GLOBAL, Scope
from rota.core.states import RunState
from rota.instants import instant

_decoded = msgspec.json.Decoder().decode
_UNTOUCHED = Run(
    id="",
    job="",
    job_version=0,
    queue="",
    priority=0,
    scope=GLOBAL,
    key=None,
    state=RunState.QUEUED,
    reason=None,
    fence=0,
    attempt=0,
    max_attempts=0,
    payload=None,
    result=None,
    error=None,
    created_at=instant(0),
    run_at=instant(0),
    started_at=None,
    finished_at=None,
    retry_of=None,
    worker_id=None,
    tags=(),
    metadata={},
)
"""What no run says that nobody has claimed yet. Another one is made of it in half the time that all its words take."""


def as_made(run: NewRun, enqueued: Enqueued) -> Run | None:
    """None if only the database knows: it was there already, or a limit, a need or another run decides what it is."""
    created_at, run_at = enqueued.created_micros, enqueued.run_micros
    if not enqueued.created or created_at is None or run_at is None:
        return None
    if run.gates or run.after or run.staff or run.pipeline or run.retry_of:
        return None
    at = instant(created_at)
    return replace(
        _UNTOUCHED,
        id=run.id,
        job=run.job,
        job_version=run.job_version,
        queue=run.queue,
        priority=run.priority,
        scope=Scope(run.scope_kind, run.scope_id),
        key=run.key,
        state=RunState.SCHEDULED if run_at > created_at else RunState.QUEUED,
        max_attempts=run.max_attempts,
        payload=_decoded(run.payload),
        created_at=at,
        run_at=at if run_at == created_at else instant(run_at),
        tags=tuple(_decoded(run.tags)) if run.tags else (),
        metadata=_decoded(run.metadata) if run.metadata else {},
    )


def all_as_made(placed: Iterable[tuple[NewRun, Enqueued]]) -> list[Run | None]:
    """Those that are like another one, and came with it, differ from it in id and payload only."""
    found: list[Run | None] = []
    seen: dict[tuple[int, int | None, int | None], Run] = {}
    for run, enqueued in placed:
        times = id(run.like or run), enqueued.created_micros, enqueued.run_micros
        model = seen.get(times) if enqueued.created and run.like else None
        if model is not None:
            found.append(replace(model, id=run.id, payload=_decoded(run.payload)))
            continue
        made = as_made(run, enqueued)
        if made is not None:
            seen[times] = made
        found.append(made)
    return found
