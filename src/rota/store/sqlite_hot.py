"""The hot operations on SQLite: prepared statements for one row, repeated inside one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from rota.core.claims import Claim, ClaimRequest
from rota.core.endings import Report
from rota.core.model import NewRun

if TYPE_CHECKING:
    from rota.store.sqlite import SqliteTx


class SqliteHotForms:
    def __init__(self, tx: SqliteTx) -> None:
        self._tx = tx

    async def enqueue(self, runs: Sequence[NewRun]) -> dict[str, tuple[int, int]]:
        now = self._tx.micros()
        due = {run.id: run.run_at if run.run_at is not None else now + run.delay for run in runs}
        rows = [(*msgspec.structs.astuple(run)[:16], now, due[run.id]) for run in runs]
        new = {row[0] for row in self._tx.each("insert_run", rows)}
        self._tx.each("insert_ready", [ready_row(run, due[run.id], now) for run in runs if run.id in new])
        return {id: (now, due[id]) for id in new}

    async def claim(self, request: ClaimRequest) -> list[Claim]:
        claims: list[Claim] = []
        known = msgspec.json.encode(request.known).decode()
        for ask in request.asks:
            rows = await self._tx.fetch(
                "claim_candidates",
                queue=ask.queue,
                wanted=ask.wanted,
                rank=ask.after.rank,
                run_at=ask.after.run_at,
                id=ask.after.id,
                solo=int(request.solo),
                known=known,
            )
            claims += [Claim(*row) for row in rows]
        if claims:
            now = self._tx.micros()
            until = now + request.lease
            self._tx.each("take", [(claim.run_id,) for claim in claims])
            self._tx.each("lease", [(c.run_id, c.fence, c.attempt, request.worker_id, now, until) for c in claims])
        return claims

    async def complete(self, reports: Sequence[Report]) -> set[str]:
        released = {row[0]: row for row in self._tx.each("release", [(r.run_id, r.fence) for r in reports])}
        if not released:
            return set()
        now = self._tx.micros()
        ended, history = [], []
        for report in reports:
            lease = released.get(report.run_id)
            if lease is None:
                continue
            id, fence, attempt, worker, claimed_at = lease
            began_at = now - report.busy
            history.append((id, fence, attempt, worker, claimed_at, began_at, now, report.measures))
            ended.append((attempt, fence, began_at, now, worker, report.result, id))
        self._tx.each("record_success", history)
        self._tx.each("end_success", ended)
        return set(released)


def ready_row(run: NewRun, due: int, now: int) -> tuple[object, ...]:
    return (
        run.id,
        run.queue,
        -run.priority,
        due,
        int(due > now),
        int(run.on_lost == "fail"),
        run.job,
        run.job_version,
    )
