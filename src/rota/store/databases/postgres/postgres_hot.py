"""The hot operations on PostgreSQL: one statement each, arrays in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import asyncpg
from msgspec.structs import asdict

from rota.core.limits.turns import BEFORE_ALL, Allowed, KeyHead, LimitChange, Room, first_of_each
from rota.core.runs.claim import (
    Candidate,
    Claim,
    ClaimRequest,
    Heads,
    LimitedRequest,
    OrderedRequest,
    Position,
    RestrictedRequest,
    WaitingRun,
)
from rota.core.runs.outcome import Report
from rota.core.runs.run import NewRun, models_of
from rota.store.alerts.emit_signal import MESSENGER
from rota.store.databases.columns import Column, Columns, column
from rota.store.databases.database import (
    EMPTY_FOR,
    AlreadyThere,
    Completed,
    CountedCandidates,
    LiveLimits,
    Row,
    keys_compared,
)

if TYPE_CHECKING:
    from rota.store.databases.postgres.postgres import PostgresTx

_SHAPE = (
    *("jobs", "job_versions", "queues", "priorities", "scope_kinds", "scope_ids", "keys", "tags", "metadata"),
    *("overrides", "max_attempts", "on_losts", "retry_ofs", "origin_ids", "run_ats", "delays", "limit_keys"),
)
_PLAIN_HEAD, _SOLO_HEAD, _NEED, _OPEN_KEY = range(4)  # kinds of rows of `heads`
_PLACE = attrgetter("rank", "run_at", "run_id")
# Replicas looked at beyond those that are asked for: many of one parent may stand before the next parent's first.
_REPLICAS = 500


class PostgresHotForms:
    def __init__(self, tx: PostgresTx) -> None:
        self._tx = tx

    async def enqueue(self, runs: Sequence[NewRun], *, asked: bool = True) -> int:
        try:
            rows = await (self._enqueue_one(runs[0], asked) if len(runs) == 1 else self._enqueue_all(runs, asked))
        except asyncpg.UniqueViolationError as error:
            raise AlreadyThere from error
        if not rows:
            raise LiveLimits
        ((created_at,),) = rows
        return int(created_at)

    async def _enqueue_one(self, run: NewRun, asked: bool) -> Sequence[Row]:
        """Insert one run without arrays, which cost more than one row is worth."""
        return await self._tx.fetch("enqueue_one", **asdict(run), limit_key=run.limit_key, asked=asked)

    async def _enqueue_all(self, runs: Sequence[NewRun], asked: bool) -> Sequence[Row]:
        # By identity first: to compare the shapes of thousands of runs costs more than all the rest.
        shapes: dict[tuple[object, ...], int] = {}
        numbers = {id(model): shapes.setdefault(_shape_of(model), len(shapes) + 1) for model in models_of(runs)}
        columns: list[Column] = [[run.id for run in runs], column([run.payload for run in runs])]
        if len(shapes) == 1:
            (shape,) = shapes
            only = dict(zip(_SHAPE, shape, strict=True))
            return await self._tx.fetch("enqueue_alike", Columns(len(runs), columns), **only, asked=asked)
        columns.append([numbers[id(run.like or run)] for run in runs])
        several = dict(zip(_SHAPE, zip(*shapes, strict=True), strict=True))
        return await self._tx.fetch("enqueue_plain", Columns(len(runs), columns), **several, asked=asked)

    async def lock_due(self, providers: Sequence[Row], **limits: object) -> Sequence[Row]:
        locked = await self._tx.fetch("lock_due", providers, **limits)
        # A statement of its own, after the lock: an older snapshot would not see a lane that was added just before it.
        schedules = [(schedule,) for _, schedule, *_ in locked]
        laned = {str(schedule) for (schedule,) in await self._tx.fetch("with_lanes", schedules)}
        if not laned and all(awaits is None for *_, awaits in locked):
            return locked
        return [
            (no, schedule, times, at, int(schedule in laned), *planned, None if awaits is None else str(awaits))
            for no, schedule, times, at, _, *planned, awaits in locked
        ]

    async def advance_ordinary(self, rows: Columns, rowids: Column) -> None:
        await self._tx.fetch("advance_cursors", rows)

    async def insert_planned(self, rows: Sequence[Row]) -> set[str] | None:
        ((count, some),) = await self._tx.fetch("insert_planned", rows, expected=len(rows))
        return None if count == len(rows) else {str(id) for id in some or ()}

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        asks = request.asks
        rows = await self._tx.fetch(
            "claim",
            queues=[ask.queue for ask in asks],
            limits=[ask.wanted for ask in asks],
            ranks=[ask.after.rank for ask in asks],
            run_ats=[ask.after.run_at for ask in asks],
            ids=[ask.after.id for ask in asks],
            before_rank=request.before.rank,
            before_run_at=request.before.run_at,
            before_id=request.before.id,
            solo=request.solo,
            jobs=list(request.known),
            versions=list(request.known.values()),
            worker_id=request.worker_id,
            lease=request.lease,
        )
        return _in_order([Claim(str(id), *facts) for id, *facts in rows], [ask.queue for ask in asks])

    async def complete(self, reports: Sequence[Report]) -> Completed:
        # In the order of ids: two reports of the same runs, repeated after an unknown outcome, must not deadlock.
        rows = sorted((r.run_id, r.fence, r.busy, r.result, r.measures) for r in reports)
        limited = True in [report.limited for report in reports]
        statement = "complete_limited" if limited else "complete"
        ((count, some, followed, signalled, *freed),) = await self._tx.fetch(statement, rows, expected=len(rows))
        ids = {id for id, *_ in rows} if count == len(rows) else {str(id) for id in some or ()}
        if signalled:
            self._tx.wake(MESSENGER)
        keys, places = freed if limited else ((), ())
        return Completed(ids, [str(id) for id in followed or ()], list(zip(keys or (), places or (), strict=True)))

    async def heads(self, request: OrderedRequest) -> Heads:
        asks = request.asks
        rows = await self._tx.fetch(
            "heads",
            queues=[ask.queue for ask in asks],
            ranks=[ask.after.rank for ask in asks],
            run_ats=[ask.after.run_at for ask in asks],
            ids=[ask.after.id for ask in asks],
            solo=request.solo,
            jobs=list(request.known),
            versions=list(request.known.values()),
            requirements=list(request.met.under_limits),
            name=request.name,
            limit=keys_compared(request.slots),
            idle=EMPTY_FOR,
            **_behind(BEFORE_ALL),
        )
        by_kind: dict[int, list[Row]] = {}
        for kind, *row in rows:
            by_kind.setdefault(kind, []).append(row)
        plain, solo = (
            {name: Position(rank, at, 1, id) for name, rank, at, id, *_ in by_kind.get(kind, ())}
            for kind in (_PLAIN_HEAD, _SOLO_HEAD)
        )
        open_keys: dict[str, list[KeyHead]] = {}
        for queue, *head in by_kind.get(_OPEN_KEY, ()):
            open_keys.setdefault(queue, []).append(_key_head(head))
        return Heads(plain, solo, open_keys, frozenset(name for name, *_ in by_kind.get(_NEED, ())))

    async def solo(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        rows = await self._tx.fetch("solo_candidates", wanted=limit, **_filters(request))
        return [Candidate(rank, at, 1, str(id), solo) for id, rank, at, solo in rows]

    async def open_keys(self, request: LimitedRequest, after: KeyHead = BEFORE_ALL) -> list[KeyHead]:
        values = {"limit": keys_compared(request.slots), "idle": EMPTY_FOR, **_behind(after)}
        rows = await self._tx.fetch("open_keys", **values, **_limited_filters(request))
        return first_of_each(_key_head(head) for _, *head in rows)

    async def counted_candidates(self, request: LimitedRequest, limits: Mapping[str, Allowed]) -> CountedCandidates:
        keys: list[Row] = [(key, limit.max, limit.period) for key, limit in limits.items()]
        rows = await self._tx.fetch("counted_candidates", keys, slots=request.slots, **_limited_filters(request))
        room: dict[str, Room] = {}
        asked: dict[str, int] = {}
        for key, now, free, ahead, stale, wanted, *_ in rows[: len(limits)]:
            room[key] = Room(free, now, ahead, bool(stale))
            if wanted:
                asked[key] = wanted
        runs = _waiting_runs([(key, *run) for key, _, _, _, _, _, *run in rows[len(limits) :]])
        return CountedCandidates(room, asked, runs)

    async def candidates(self, request: LimitedRequest, slots_by_key: Mapping[str, int]) -> list[WaitingRun]:
        keys, wanted = list(slots_by_key), list(slots_by_key.values())
        rows = await self._tx.fetch("limited_candidates", keys=keys, wanted=wanted, **_limited_filters(request))
        return _waiting_runs(rows)

    async def take_limited(
        self, request: LimitedRequest, run_ids: Sequence[str], changes: Sequence[LimitChange] = ()
    ) -> list[Claim]:
        rows = await self._tx.fetch(
            "take_limited",
            [(id,) for id in run_ids],
            worker_id=request.worker_id,
            lease=request.lease,
            keys=[change.key for change in changes],
            shuts=[change.shut for change in changes],
            blockers=[change.blocked_by for change in changes],
            serveds=[int(change.served) for change in changes],
            openings=[change.opens_at for change in changes],
        )
        return _taken(run_ids, {str(id): Claim(*(str(id), *facts, True)) for id, *facts in rows})

    async def take(self, request: RestrictedRequest, run_ids: Sequence[str]) -> list[Claim]:
        ids = [(id,) for id in run_ids]
        rows = await self._tx.fetch("take_restricted", ids, worker_id=request.worker_id, lease=request.lease)
        return _taken(run_ids, {str(id): Claim(str(id), *facts) for id, *facts in rows})

    async def open_limits(self, places: Sequence[Row]) -> Sequence[Row]:
        return await self._tx.fetch("open_limits", places)

    async def needed(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        rows = await self._tx.fetch("needed_candidates", wanted=limit, **_needs(request))
        return [Candidate(rank, at, preferred, str(id), solo) for id, rank, at, preferred, solo in rows]

    async def needed_head(self, request: RestrictedRequest) -> list[Candidate]:
        rows = await self._tx.fetch("needed_head", wanted=1, **_needs(request))
        return [Candidate(rank, at, preferred, str(id), solo) for id, rank, at, preferred, solo in rows]

    async def open_replicas(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        values = {**_filters(request), "requirements": list(request.met.open_to), "name": request.name, "wanted": limit}
        rows = await self._tx.fetch("open_replicas", walk=_REPLICAS + limit, **values)
        return [Candidate(rank, at, 1, str(id), solo, str(up)) for id, rank, at, solo, up in rows]


def _shape_of(run: NewRun) -> tuple[object, ...]:
    """Return what many runs of a bulk have in common, in the order of `_SHAPE`: all but id and payload."""
    return (
        run.job, run.job_version, run.queue, run.priority, run.scope_kind, run.scope_id, run.key, run.tags,
        run.metadata, run.overrides, run.max_attempts, run.on_lost, run.retry_of, run.origin_id, run.run_at, run.delay,
        run.limit_key,
    )  # fmt: skip


def _in_order(claims: list[Claim], queues: Sequence[str]) -> list[Claim]:
    """A statement that deletes returns its rows in any order; they begin in this one."""
    claims.sort(key=_PLACE)
    if len(queues) > 1:
        turns = {queue: turn for turn, queue in enumerate(queues)}
        claims.sort(key=lambda claim: turns[claim.queue])
    return claims


def _taken(run_ids: Sequence[str], claims: Mapping[str, Claim]) -> list[Claim]:
    return [claims[id] for id in run_ids if id in claims]


def _key_head(row: Row) -> KeyHead:
    rank, at, id, key, at_least, served_at = row
    return KeyHead(key, rank or 0, at or 0, id, at_least, served_at)


def _behind(head: KeyHead) -> dict[str, object]:
    return {"after_rank": head.at_least, "after_served_at": head.served_at, "after_key": head.key}


def _waiting_runs(rows: Sequence[Row]) -> list[WaitingRun]:
    return [
        WaitingRun(key, str(id), solo, bool(is_open), rank, at, tuple(wider))
        for key, id, solo, is_open, rank, at, wider in rows
    ]


def _limited_filters(request: LimitedRequest) -> dict[str, object]:
    return {**_filters(request), "requirements": list(request.met.under_limits), "name": request.name}


def _needs(request: RestrictedRequest) -> dict[str, object]:
    met = request.met
    preferred = [0] * len(met.named) + [1] * len(met.plain)
    return {**_filters(request), "requirements": list(met.all), "preferred": preferred}


def _filters(request: LimitedRequest | RestrictedRequest) -> dict[str, object]:
    versions = request.known
    return {
        "queues": list(request.queues),
        "jobs": list(versions),
        "versions": list(versions.values()),
        "solo": request.solo,
    }
