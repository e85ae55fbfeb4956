"""The hot operations on PostgreSQL: one statement each, arrays in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import asyncpg
from msgspec.structs import asdict, astuple

from rota.core.claims import Claim, ClaimRequest
from rota.core.endings import Report
from rota.core.model import NewRun
from rota.store.database import AlreadyThere, Row

if TYPE_CHECKING:
    from rota.store.postgres import PostgresTx

_PAYLOAD, _FACTS = 8, 18
_SHAPE = (
    *("jobs", "job_versions", "queues", "priorities", "scope_kinds", "scope_ids", "keys", "tags", "metadata"),
    *("overrides", "max_attempts", "on_losts", "retry_ofs", "origin_ids", "run_ats", "delays"),
)


class PostgresHotForms:
    def __init__(self, tx: PostgresTx) -> None:
        self._tx = tx

    async def enqueue(self, runs: Sequence[NewRun]) -> int:
        try:
            rows = await (self._enqueue_one(runs[0]) if len(runs) == 1 else self._enqueue_all(runs))
        except asyncpg.UniqueViolationError as error:
            raise AlreadyThere from error
        return int(rows[0][0])

    async def _enqueue_one(self, run: NewRun) -> Sequence[Row]:
        """Without arrays, which cost more than one row is worth."""
        return await self._tx.fetch("enqueue_one", **asdict(run))

    async def _enqueue_all(self, runs: Sequence[NewRun]) -> Sequence[Row]:
        shapes: dict[tuple[object, ...], int] = {}
        numbers: dict[int, int] = {}
        rows: list[tuple[str, str, int | None]] = []
        for run in runs:
            model = run.like or run
            number = numbers.get(id(model))
            if number is None:
                facts = astuple(model)
                shape = facts[1:_PAYLOAD] + facts[_PAYLOAD + 1 : _FACTS]
                number = numbers[id(model)] = shapes.setdefault(shape, len(shapes) + 1)
            rows.append((run.id, run.payload, number))
        columns = dict(zip(_SHAPE, zip(*shapes, strict=True), strict=True))
        if len(shapes) == 1:
            rows = [(id, payload, None) for id, payload, _ in rows]
        return await self._tx.fetch("enqueue_plain", rows, **columns)

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        asks = request.asks
        rows = await self._tx.fetch(
            "claim",
            queues=[ask.queue for ask in asks],
            limits=[ask.wanted for ask in asks],
            ranks=[ask.after.rank for ask in asks],
            run_ats=[ask.after.run_at for ask in asks],
            ids=[ask.after.id for ask in asks],
            solo=int(request.solo),
            jobs=list(request.known),
            versions=list(request.known.values()),
            worker_id=request.worker_id,
            lease=request.lease,
        )
        return [Claim(str(row[0]), *row[1:]) for row in rows]

    async def complete(self, reports: Sequence[Report]) -> set[str]:
        # In the order of ids: two reports of the same runs, repeated after an unknown outcome, must not deadlock.
        rows = sorted((r.run_id, r.fence, r.busy, r.result, r.measures) for r in reports)
        ((count, some),) = await self._tx.fetch("complete", rows, expected=len(rows))
        return {row[0] for row in rows} if count == len(rows) else {str(id) for id in some or ()}
