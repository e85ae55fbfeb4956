"""The hot operations on SQLite: few statements, each for a whole batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from rota.core.limits.turns import BEFORE_ALL, Allowed, KeyHead, LimitChange, Room, fair_asks, first_of_each
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
from rota.store.alerts import emit_signal
from rota.store.databases.columns import Column, Columns
from rota.store.databases.database import (
    EMPTY_FOR,
    AlreadyThere,
    Completed,
    CountedCandidates,
    LiveLimits,
    Row,
    keys_compared,
)
from rota.store.databases.sqlite.connection_thread import is_frozen
from rota.store.runs.enqueue import ready_row

if TYPE_CHECKING:
    from rota.store.databases.sqlite.sqlite import SqliteTx

Versions = Mapping[str, int]

_MANY, _NEAR = 200, 20
_keys = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_rows = msgspec.json.Decoder(list[list[Any]]).decode


class SqliteHotForms:
    def __init__(self, tx: SqliteTx) -> None:
        self._tx = tx

    async def enqueue(self, runs: Sequence[NewRun], *, asked: bool = True) -> int:
        if not asked and await self._tx.fetch("any_live_limit"):
            raise LiveLimits
        now = self._tx.micros()
        due = [run.run_at if run.run_at is not None else now + run.delay for run in runs]
        rows = [(*msgspec.structs.astuple(run)[:16], now, at) for run, at in zip(runs, due, strict=True)]
        try:
            self._tx.each("insert_run", rows)
        except apsw.ConstraintError as error:
            if is_frozen(error):
                raise
            raise AlreadyThere from error
        self._tx.each("insert_ready", [ready_row(run, at, now) for run, at in zip(runs, due, strict=True)])
        return now

    async def lock_due(self, providers: Sequence[Row], **limits: object) -> Sequence[Row]:
        return await self._tx.fetch("lock_due", providers, **limits)

    async def advance_ordinary(self, rows: Columns, rowids: Column) -> None:
        await self._tx.fetch("advance_in_place", Columns(len(rows), [rowids, *rows.columns]))
        # Schedules that are due together are moved side by side: the next time a few pages are written instead of one
        # for each.
        if are_scattered(rowids):
            ((last,),) = await self._tx.fetch("last_rowid")
            self._tx.each("move_cursors", list(enumerate(rowids, last + 1)))

    async def insert_planned(self, rows: Sequence[Row]) -> set[str] | None:
        """Insert without `returning`, which would make each row a value of Python's."""
        before = self._tx.changes()
        await self._tx.fetch("insert_planned", rows)
        if self._tx.changes() - before == len(rows):
            return None
        existing = await self._tx.fetch("which_exist", [(id,) for id, *_ in rows])
        return {id for id, _, _ in existing}

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        claims: list[Claim] = []
        jobs, queues = await self._not_paused(request.known, [ask.queue for ask in request.asks])
        versions = msgspec.json.encode(jobs).decode()
        for ask in request.asks:
            if ask.queue not in queues:
                continue
            # Handed from statement to statement as one JSON text: the rows become Python values only once, at the end.
            ((candidates,),) = await self._tx.fetch(
                "claim_candidates",
                queue=ask.queue,
                wanted=ask.wanted,
                rank=ask.after.rank,
                run_at=ask.after.run_at,
                id=ask.after.id,
                before_rank=request.before.rank,
                before_run_at=request.before.run_at,
                before_id=request.before.id,
                solo=request.solo,
                known=versions,
            )
            if candidates == "[]":
                continue
            await self._tx.fetch("lease", claims=candidates, worker_id=request.worker_id, lease=request.lease)
            await self._tx.fetch("take", claims=candidates)
            claims += [Claim(*row) for row in _decode_rows(candidates)]
        return claims

    async def complete(self, reports: Sequence[Report]) -> Completed:
        rows = [(r.run_id, r.fence, r.busy, r.result, r.measures) for r in reports]
        # Fenced: `current` are the runs whose lease has the reported fence. There is one writer, so they stay so below.
        ((current, any_waits, heard),) = await self._tx.fetch("current_leases", rows)
        await self._tx.fetch("end_successes", rows)
        await self._tx.fetch("release", current=current)
        followed = await self._tx.fetch("followed_among", current=current) if any_waits else []
        done = msgspec.json.decode(current, type=list[str])
        if heard:
            await emit_signal.tell(self._tx, done)
        settled = set(done)
        limited = [(report.run_id,) for report in reports if report.limited and report.run_id in settled]
        left = await self._tx.fetch("drop_gates", limited) if limited else []
        freed: list[Row] = [(key, place) for key, place, period in left if period is None]
        return Completed(settled, [id for (id,) in followed], freed)

    async def _not_paused(self, versions: Versions, queues: Sequence[str]) -> tuple[Versions, Sequence[str]]:
        """Leave out what is paused, once for all rows: mostly nothing is. There is one writer, so nobody pauses
        anything meanwhile.
        """
        pauses = await self._tx.fetch("pauses")
        if not pauses:
            return versions, queues
        jobs, held = ({name for kind, name in pauses if kind == which} for which in ("job", "queue"))
        return (
            {job: version for job, version in versions.items() if job not in jobs},
            [queue for queue in queues if queue not in held],
        )

    async def heads(self, request: OrderedRequest) -> Heads:
        jobs, queues = await self._not_paused(request.known, [ask.queue for ask in request.asks])
        known = _json(jobs)
        plain: dict[str, Position] = {}
        solo: dict[str, Position] = {}
        for ask in request.asks:
            if ask.queue not in queues:
                continue
            mark = {"rank": ask.after.rank, "run_at": ask.after.run_at, "id": ask.after.id}
            for rank, at, id in await self._tx.fetch("plain_head", queue=ask.queue, known=known, **mark):
                plain[ask.queue] = Position(rank, at, 1, id)
            values: dict[str, object] = {"known": known, "solo": request.solo, "wanted": 1}
            for id, rank, at, _ in await self._tx.fetch("solo_candidates", queue=ask.queue, **values):
                solo[ask.queue] = Position(rank, at, 1, id)
        beside = [id for (id,) in await self._tx.fetch("beside_plain")]
        open_keys: dict[str, list[KeyHead]] = {}
        if None in beside:
            for queue in queues:
                limited = request.limited(queue, request.slots)
                open_keys[queue] = await self._open_keys(limited, known, queue)
        return Heads(plain, solo, open_keys, frozenset(id for id in beside if id is not None))

    async def solo(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        jobs, queues = await self._not_paused(request.known, request.queues)
        values: dict[str, object] = {"known": _json(jobs), "solo": request.solo, "wanted": limit}
        return [
            Candidate(rank, at, 1, id, solo)
            for queue in queues
            for id, rank, at, solo in await self._tx.fetch("solo_candidates", queue=queue, **values)
        ]

    async def open_keys(self, request: LimitedRequest, after: KeyHead = BEFORE_ALL) -> list[KeyHead]:
        jobs, queues = await self._not_paused(request.known, request.queues)
        heads: list[KeyHead] = []
        for queue in queues:
            heads += await self._open_keys(request, _json(jobs), queue, after)
        return first_of_each(heads)

    async def _open_keys(
        self, request: LimitedRequest, known: str, queue: str, after: KeyHead = BEFORE_ALL
    ) -> list[KeyHead]:
        """Look into one queue: that is a walk along an index that has their order."""
        values = {"solo": request.solo, "idle": EMPTY_FOR, "limit": keys_compared(request.slots), "name": request.name}
        values |= {"after_rank": after.at_least, "after_served_at": after.served_at, "after_key": after.key}
        requirements = _json(request.met.under_limits)
        rows = await self._tx.fetch("open_keys", queue=queue, known=known, requirements=requirements, **values)
        return [
            KeyHead(key, rank or 0, at or 0, id, at_least, served_at) for key, at_least, served_at, rank, at, id in rows
        ]

    async def counted_candidates(self, request: LimitedRequest, limits: Mapping[str, Allowed]) -> CountedCandidates:
        counted = await self._tx.fetch("in_use", [(key, limit.max, limit.period) for key, limit in limits.items()])
        room = {key: Room(free, now, ahead, bool(stale)) for key, now, free, ahead, stale in counted}
        slots = {key: room[key].free for key in limits if room[key].free > 0}
        asked = fair_asks(slots, request.slots)
        return CountedCandidates(room, asked, await self.candidates(request, asked) if asked else [])

    async def candidates(self, request: LimitedRequest, slots_by_key: Mapping[str, int]) -> list[WaitingRun]:
        jobs, queues = await self._not_paused(request.known, request.queues)
        waiting: list[tuple[int, int, str, str, int, int, str]] = []
        values: dict[str, object] = {"known": _json(jobs), "solo": request.solo, "name": request.name}
        values["requirements"] = _json(request.met.under_limits)
        for wanted in sorted(set(slots_by_key.values())):
            keys = _json([key for key, slots in slots_by_key.items() if slots == wanted])
            for queue in queues:
                rows = await self._tx.fetch("limited_candidates", queue=queue, keys=keys, wanted=wanted, **values)
                waiting += [(rank, at, id, key, *others) for key, id, rank, at, *others in rows]
        return [
            WaitingRun(key, id, solo, bool(is_open), rank, at, _keys(wider) if wider != "[]" else ())
            for rank, at, id, key, solo, is_open, wider in sorted(waiting)
        ]

    async def take_limited(
        self, request: LimitedRequest, run_ids: Sequence[str], changes: Sequence[LimitChange] = ()
    ) -> list[Claim]:
        taken = [Claim(*(*row, True)) for row in await self._taken(request, run_ids)]
        # With the fence of the new lease: the report of an earlier attempt must not give this slot back.
        await self._tx.fetch("enter_gates", [(claim.run_id, claim.fence) for claim in taken])
        if changes:
            await self._tx.fetch("shut_limits", [change.row for change in changes])
        return taken

    async def take(self, request: RestrictedRequest, run_ids: Sequence[str]) -> list[Claim]:
        return [Claim(*row) for row in await self._taken(request, run_ids)]

    async def _taken(self, request: LimitedRequest | RestrictedRequest, run_ids: Sequence[str]) -> list[Any]:
        ((claims,),) = await self._tx.fetch("limited_claims", ids=msgspec.json.encode(run_ids).decode())
        await self._tx.fetch("lease", claims=claims, worker_id=request.worker_id, lease=request.lease)
        await self._tx.fetch("take", claims=claims)
        return _decode_rows(claims)

    async def open_limits(self, places: Sequence[Row]) -> Sequence[Row]:
        await self._tx.fetch("open_limits", places)
        return await self._tx.fetch("opened_limits", places)

    async def needed(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        jobs, queues = await self._not_paused(request.known, request.queues)
        named, candidates = set(request.met.named), list[Candidate]()
        values: dict[str, object] = {"known": _json(jobs), "solo": request.solo, "wanted": limit}
        for need in request.met.all:  # each for itself: then it is a look into an index that has their order
            for queue in queues:
                rows = await self._tx.fetch("needed_candidates", need=need, queue=queue, **values)
                candidates += [Candidate(rank, at, int(need not in named), id, solo) for id, rank, at, solo in rows]
        return sorted(candidates)[:limit]

    async def needed_head(self, request: RestrictedRequest) -> list[Candidate]:
        return await self.needed(request, 1)  # nothing is locked here: there is one writer

    async def open_replicas(self, request: RestrictedRequest, limit: int) -> list[Candidate]:
        jobs, queues = await self._not_paused(request.known, request.queues)
        values: dict[str, object] = {"known": _json(jobs), "queues": _json(queues), "solo": request.solo}
        requirements = _json(request.met.open_to)
        rows = await self._tx.fetch(
            "open_replicas", wanted=limit, name=request.name, requirements=requirements, **values
        )
        return [Candidate(rank, at, 1, id, solo, up) for id, rank, at, solo, up in rows]


def are_scattered(rowids: Sequence[int]) -> bool:
    """Return whether so many rows lie so far from each other, in any order, that it is worth moving them together."""
    far = sum(later - sooner >= _NEAR for sooner, later in pairwise(sorted(rowids)))
    return len(rowids) >= _MANY and far > len(rowids) // 4


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
