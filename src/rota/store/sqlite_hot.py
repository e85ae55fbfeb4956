"""The hot operations on SQLite: few statements, each for a whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from rota.core.claims import Claim, ClaimRequest
from rota.core.endings import Report
from rota.core.model import NewRun
from rota.store.database import AlreadyThere
from rota.store.ready import ready_row

if TYPE_CHECKING:
    from rota.store.sqlite import SqliteTx


_decode_rows = msgspec.json.Decoder(list[list[Any]]).decode


class SqliteHotForms:
    def __init__(self, tx: SqliteTx) -> None:
        self._tx = tx

    async def enqueue(self, runs: Sequence[NewRun]) -> int:
        now = self._tx.micros()
        due = [run.run_at if run.run_at is not None else now + run.delay for run in runs]
        rows = [(*msgspec.structs.astuple(run)[:16], now, at) for run, at in zip(runs, due, strict=True)]
        try:
            self._tx.each("insert_run", rows)
        except apsw.ConstraintError as error:
            raise AlreadyThere from error
        self._tx.each("insert_ready", [ready_row(run, at, now) for run, at in zip(runs, due, strict=True)])
        return now

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        claims: list[Claim] = []
        known = msgspec.json.encode(request.known).decode()
        for ask in request.asks:
            (found,) = await self._tx.fetch(
                "claim_candidates",
                queue=ask.queue,
                wanted=ask.wanted,
                rank=ask.after.rank,
                run_at=ask.after.run_at,
                id=ask.after.id,
                solo=int(request.solo),
                known=known,
            )
            if found[0] == "[]":
                continue
            await self._tx.fetch("lease", claims=found[0], worker_id=request.worker_id, lease=request.lease)
            await self._tx.fetch("take", claims=found[0])
            claims += [Claim(*row) for row in _decode_rows(found[0])]
        return claims

    async def complete(self, reports: Sequence[Report]) -> set[str]:
        rows = [(r.run_id, r.fence, r.busy, r.result, r.measures) for r in reports]
        ((current,),) = await self._tx.fetch("current_leases", rows)
        await self._tx.fetch("end_successes", rows)
        await self._tx.fetch("release", current=current)
        return set(msgspec.json.decode(current, type=list[str]))
