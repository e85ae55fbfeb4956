"""The hot operations on PostgreSQL: one statement each, arrays in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING

import asyncpg
from msgspec.structs import asdict

from rota.core.limits.turns import KeyHead
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
from rota.core.runs.run import NewRun
from rota.store.alerts.emit_signal import MESSENGER
from rota.store.databases.columns import Column, Columns
from rota.store.databases.database import AlreadyThere, Completed, Row
from rota.values.durations import in_micros

if TYPE_CHECKING:
    from rota.store.databases.postgres.postgres import PostgresTx

_SHAPE = (
    *("jobs", "job_versions", "queues", "priorities", "scope_kinds", "scope_ids", "keys", "tags", "metadata"),
    *("overrides", "max_attempts", "on_losts", "retry_ofs", "origin_ids", "run_ats", "delays", "limit_keys"),
)
_PLAIN_HEAD, _SOLO_HEAD, _NEED, _OPEN_LIMIT = range(4)  # kinds of rows of `heads`
_PLACE = attrgetter("rank", "run_at", "run_id")
# Replicas looked at beyond those that are asked for: many of one parent may stand before the next parent's first.
_REPLICAS = 500
# A limit that was not served for so long is looked at even if nothing waits under it, and is then shut.
_EMPTY_FOR = in_micros(timedelta(seconds=0.2))


class PostgresHotForms:
    def __init__(self, tx: PostgresTx) -> None:
        self._tx = tx

    async def enqueue(self, runs: Sequence[NewRun]) -> int:
        try:
            rows = await (self._enqueue_one(runs[0]) if len(runs) == 1 else self._enqueue_all(runs))
        except asyncpg.UniqueViolationError as error:
            raise AlreadyThere from error
        ((created_at,),) = rows
        return int(created_at)

    async def _enqueue_one(self, run: NewRun) -> Sequence[Row]:
        """Insert one run without arrays, which cost more than one row is worth."""
        return await self._tx.fetch("enqueue_one", **asdict(run), limit_key=run.limit_key)

    async def _enqueue_all(self, runs: Sequence[NewRun]) -> Sequence[Row]:
        shapes: dict[tuple[object, ...], int] = {}
        numbers: dict[int, int] = {}
        rows: list[tuple[str, str, int | None]] = []
        for run in runs:
            # By identity first: to compare the shapes of thousands of runs costs more than the rest of this loop.
            model = run.like or run
            number = numbers.get(id(model))
            if number is None:
                shape = _shape_of(model)
                number = numbers[id(model)] = shapes.setdefault(shape, len(shapes) + 1)
            rows.append((run.id, run.payload, number))
        columns = dict(zip(_SHAPE, zip(*shapes, strict=True), strict=True))
        if len(shapes) == 1:
            rows = [(id, payload, None) for id, payload, _ in rows]
        return await self._tx.fetch("enqueue_plain", rows, **columns)

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
        ((count, some, followed, signalled),) = await self._tx.fetch("complete", rows, expected=len(rows))
        ids = {id for id, *_ in rows} if count == len(rows) else {str(id) for id in some or ()}
        if signalled:
            self._tx.wake(MESSENGER)
        return Completed(ids, [str(id) for id in followed or ()])

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
        )
        plain, solo = (
            {name: Position(rank, 1, at, id) for found, name, rank, at, id in rows if found == kind}
            for kind in (_PLAIN_HEAD, _SOLO_HEAD)
        )
        needs = frozenset(name for kind, name, *_ in rows if kind == _NEED)
        return Heads(plain, solo, any(kind == _OPEN_LIMIT for kind, *_ in rows), needs)

    async def solo(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        rows = await self._tx.fetch("solo_candidates", wanted=limit, **_filters(request))
        return [Candidate(rank, place, at, str(id), solo) for id, rank, place, at, solo in rows]

    async def open_keys(self, request: LimitedRequest, limit: int) -> list[KeyHead]:
        values = {**_filters(request), "requirements": list(request.met.under_limits), "name": request.name}
        rows = await self._tx.fetch("open_keys", limit=limit, idle=_EMPTY_FOR, **values)
        return [KeyHead(key, rank, at, id) if id else KeyHead(key) for key, rank, at, id in rows]

    async def candidates(self, request: LimitedRequest, slots_by_key: Mapping[str, int]) -> list[WaitingRun]:
        values = {**_filters(request), "requirements": list(request.met.under_limits), "name": request.name}
        rows = await self._tx.fetch(
            "limited_candidates", keys=list(slots_by_key), wanted=list(slots_by_key.values()), **values
        )
        return [WaitingRun(key, str(id), solo, bool(is_open), *place) for key, id, solo, is_open, *place in rows]

    async def take(self, request: LimitedRequest | RestrictedRequest, run_ids: Sequence[str]) -> list[Claim]:
        ids = [(id,) for id in run_ids]
        rows = await self._tx.fetch("take_limited", ids, worker_id=request.worker_id, lease=request.lease)
        claims = {str(id): Claim(*(str(id), *facts, True)) for id, *facts in rows}
        return [claims[id] for id in run_ids if id in claims]

    async def needed(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        rows = await self._tx.fetch("needed_candidates", wanted=limit, **_needs(request))
        return [Candidate(rank, place, at, str(id), solo) for id, rank, place, at, solo in rows]

    async def needed_head(self, request: RestrictedRequest) -> list[Candidate]:
        rows = await self._tx.fetch("needed_head", **_needs(request))
        return [Candidate(rank, place, at, str(id), solo) for id, rank, place, at, solo in rows]

    async def open_replicas(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        values = {**_filters(request), "requirements": list(request.met.open_to), "name": request.name, "wanted": limit}
        rows = await self._tx.fetch("open_replicas", walk=_REPLICAS + limit, **values)
        return [Candidate(rank, place, at, str(id), solo, str(up)) for id, rank, place, at, solo, up in rows]


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


def _needs(request: RestrictedRequest) -> dict[str, object]:
    met = request.met
    places = [0] * len(met.named) + [1] * len(met.plain)
    return {**_filters(request), "requirements": list(met.all), "places": places}


def _filters(request: LimitedRequest | RestrictedRequest) -> dict[str, object]:
    versions = request.known
    return {
        "queues": list(request.queues),
        "jobs": list(versions),
        "versions": list(versions.values()),
        "solo": request.solo,
    }
