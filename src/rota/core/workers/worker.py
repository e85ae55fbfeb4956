"""Workers as others see them: their state, their settings, and what operators request of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from rota.errors import AmbiguousWorker, Conflict, Invalid, UnknownWorker
from rota.values.durations import Duration, format_duration, parse_duration
from rota.values.names import checked_name

MOST_SLOTS = 10_000
MOST_WEIGHT = 1_000
SHORTEST_HEARTBEAT = timedelta(milliseconds=100)
SHORTEST_POLL = timedelta(milliseconds=10)
SILENCE = timedelta(days=1)
"""A worker that was silent for so long is deleted."""
_INBOX = "\x01worker:"
_LEASE = timedelta(seconds=30)  # of an older worker, which does not report its own

Queues = Mapping[str, int] | Iterable[str]
"""Names, or names with weights: a queue of weight 3 gets three slots where one of weight 1 gets one."""


class WorkerState(StrEnum):
    """State of a worker. A worker never reports `gone`: it follows from a silence longer than its lease."""

    WORKING = "working"
    DRAINING = "draining"
    STOPPING = "stopping"
    GONE = "gone"


WORKER_STATE_WORDS: dict[WorkerState, str] = {
    WorkerState.WORKING: "it claims runs",
    WorkerState.DRAINING: "it finishes what it has, and claims nothing new",
    WorkerState.STOPPING: "it is shutting down: its handlers have `shutdown_grace` to finish",
    WorkerState.GONE: "it sent no heartbeat for longer than its lease",
}


class Presence(StrEnum):
    ALIVE = "alive"
    STALE = "stale"
    SILENT = "silent"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Effective intervals of a worker: heartbeats, polls, and the length of its leases."""

    heartbeat: timedelta
    poll: timedelta
    lease: timedelta


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings that may change while a worker runs; None: as it was started."""

    slots: int | None = None
    queues: dict[str, int] | None = None
    heartbeat: timedelta | None = None
    poll: timedelta | None = None


class OperatorRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sum of all that operators request of a worker, not the last request only.

    So it is idempotent: a worker may read it twice, or late.
    """

    state: WorkerState = WorkerState.WORKING
    """What it is asked to do: work, drain or stop."""
    settings: WorkerSettings = WorkerSettings()


class WorkerRun(msgspec.Struct, frozen=True):
    """Run that a worker has claimed."""

    id: str
    job: str
    attempt: int
    claimed_at: datetime


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """Worker, as its last heartbeat described it."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    """Version of rota."""
    state: WorkerState
    queues: dict[str, int]
    jobs: tuple[str, ...]
    """Names of the jobs that it knows."""
    slots: int
    held: int
    """Number of runs that it holds."""
    runs: tuple[WorkerRun, ...]
    """The oldest runs that it holds."""
    started_at: datetime
    seen_at: datetime
    heartbeat: timedelta | None
    poll: timedelta | None
    asked: OperatorRequest | None
    asked_by: str | None
    labels: tuple[str, ...] = ()
    """Its labels."""
    app_version: str = ""


def presence(seen_at: int, now: int, lease: timedelta | None = None) -> Presence:
    """Classify a worker by its last heartbeat; instants in microseconds.

    `stale`: silent for longer than a lease, so its runs are taken away. `silent`: for so long that it is deleted.
    """
    quiet = timedelta(microseconds=now - seen_at)
    if quiet > SILENCE:
        return Presence.SILENT
    return Presence.STALE if quiet > (lease or _LEASE) else Presence.ALIVE


def name_of(worker_id: str) -> str:
    """Return the name in a worker's id, which is `name@boot`."""
    return worker_id.rpartition("@")[0] or worker_id


def weights_of(queues: Queues) -> dict[str, int]:
    """Return every queue with its weight, which is 1 if only names are given."""
    if isinstance(queues, str):
        raise Invalid(f"queues must be a list of names, not {queues!r:.80}", hint=f"[{queues!r:.80}]")
    weights = dict(queues) if isinstance(queues, Mapping) else dict.fromkeys(queues, 1)
    for queue, weight in weights.items():
        checked_name(queue, "queue")
        if type(weight) is not int or not 1 <= weight <= MOST_WEIGHT:
            raise Invalid(f"the weight of queue {queue!r} must be 1 to {MOST_WEIGHT}, not {weight!r:.80}")
    if not weights:
        raise Invalid("a worker needs at least one queue")
    return weights


def uneven(weights: Mapping[str, int]) -> dict[str, int]:
    """Return the weights, or nothing if all are equal: then there is nothing to weigh."""
    return dict(weights) if len(set(weights.values())) > 1 else {}


def checked_settings(
    *,
    slots: int | None = None,
    queues: Queues | None = None,
    heartbeat: Duration | None = None,
    poll: Duration | None = None,
) -> WorkerSettings:
    if slots is not None and (type(slots) is not int or not 1 <= slots <= MOST_SLOTS):
        raise Invalid(f"slots must be 1 to {MOST_SLOTS}, not {slots!r:.80}")
    settings = WorkerSettings(
        slots=slots,
        queues=None if queues is None else weights_of(queues),
        heartbeat=_at_least(SHORTEST_HEARTBEAT, "heartbeat", heartbeat),
        poll=_at_least(SHORTEST_POLL, "poll", poll),
    )
    if settings == WorkerSettings():
        raise Invalid("no setting was given", hint="give slots, queues, heartbeat or poll")
    return settings


def _at_least(least: timedelta, what: str, value: Duration | None) -> timedelta | None:
    if value is None:
        return None
    span = parse_duration(value, what)
    if span < least:
        raise Invalid(f"{what} must be at least {format_duration(least)}, not {format_duration(span)}")
    return span


def require_heartbeat_within(lease: timedelta | None, settings: WorkerSettings) -> None:
    """Refuse a heartbeat that is too slow for the lease: a single lost heartbeat must not cost the lease."""
    lease = lease or _LEASE
    if settings.heartbeat is not None and lease < 3 * settings.heartbeat:
        problem = (
            f"lease ({format_duration(lease)}) must be at least 3 × heartbeat ({format_duration(settings.heartbeat)})"
        )
        raise Invalid(problem, hint="one lost heartbeat must not cost a lease")


def also_asked(
    before: OperatorRequest, state: WorkerState | None = None, settings: WorkerSettings | None = None
) -> OperatorRequest:
    """Merge a new request into the earlier ones.

    A request to stop cannot be undone: the worker may have begun to stop.
    """
    if state is not None and before.state is not WorkerState.STOPPING:
        before = msgspec.structs.replace(before, state=state)
    if settings is not None:
        changes = {name: value for name, value in msgspec.structs.asdict(settings).items() if value is not None}
        before = msgspec.structs.replace(before, settings=msgspec.structs.replace(before.settings, **changes))
    return before


def require_one_to_resume(requests: Sequence[tuple[str, OperatorRequest]]) -> None:
    if requests and all(request.state is WorkerState.STOPPING for _, request in requests):
        hint = "start another one"
        raise Conflict(f"worker {requests[0][0]} was asked to stop, which cannot be undone", hint=hint)


def read_asked(text: str | None) -> OperatorRequest:
    return OperatorRequest() if text is None else msgspec.json.decode(text, type=OperatorRequest)


def write_asked(request: OperatorRequest) -> str:
    return msgspec.json.encode(request, order="deterministic").decode()


def inbox_of(worker_id: str) -> str:
    """Name the hint that tells this worker alone to read what it is asked; no queue may have such a name."""
    return f"{_INBOX}{worker_id}"


def matching(who: str, workers: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of workers by id, by a name that several may share, or by the beginning of one id.

    `workers` are (id, name).
    """
    pairs = list(workers)
    exact = [id for id, _ in pairs if id == who] or [id for id, name in pairs if name == who]
    if exact:
        return exact
    begun = [id for id, _ in pairs if who and id.startswith(who)]
    if len(begun) > 1:
        raise AmbiguousWorker(who, begun)
    if not begun:
        raise UnknownWorker(who, {name for _, name in pairs})
    return begun


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Heartbeat of a worker; `weights` only if they differ, `asked` is the request of operators that it read last."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    queues: tuple[str, ...]
    jobs: tuple[str, ...]
    slots: int
    weights: dict[str, int] = {}
    state: WorkerState = WorkerState.WORKING
    pace: Pace | None = None
    asked: str | None = None
    labels: tuple[str, ...] = ()
    app_version: str = ""
