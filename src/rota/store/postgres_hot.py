"""The hot operations on PostgreSQL: one statement each, arrays in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from rota.core.claims import Claim, ClaimRequest
from rota.core.endings import Report
from rota.core.model import NewRun

if TYPE_CHECKING:
    from rota.store.postgres import PostgresTx

_COLUMNS = 18


class PostgresHotForms:
    def __init__(self, tx: PostgresTx) -> None:
        self._tx = tx

    async def enqueue(self, runs: Sequence[NewRun]) -> dict[str, tuple[int, int]]:
        rows = await self._tx.fetch("enqueue_plain", [astuple(run)[:_COLUMNS] for run in runs])
        return {str(id): (created_at, run_at) for id, created_at, run_at in rows}

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
        return {str(row[0]) for row in await self._tx.fetch("complete", rows)}
