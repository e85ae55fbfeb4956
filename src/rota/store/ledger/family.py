"""Walk from a run to its family, round by round, each round one statement along indexes."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.ledger.family import Edge, Family, FamilyRun, Growth, Kinship
from rota.core.progress.notes import percentage_of
from rota.core.runs.dependencies import written
from rota.core.states import RunState
from rota.store.databases.database import Database, Row, Tx
from rota.store.databases.pinned_plans import walk_indexes
from rota.store.ledger.occurrences import snapshot
from rota.store.runs.read import find_run, of_scope
from rota.values.instants import instant, maybe_instant
from rota.values.scope import Scope

_MOST_ROUNDS = 100
"""A chain that is longer is cut, so that nobody can make the question take long."""


class FamilyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, part: str, limit: int, within: Scope | None = None) -> Family:
        """Return the family of a run, in the transaction that finds it."""

        async def body(tx: Tx) -> Family:
            await snapshot(tx)
            run_id = await find_run(tx, part, within)
            await walk_indexes(tx)
            return await _family(tx, run_id, limit, within)

        return await self._database.read(body)


async def _family(tx: Tx, run_id: str, limit: int, within: Scope | None) -> Family:
    growth = Growth(run_id, limit)
    frontier, cut = [run_id], set[str]()
    # A link more than there may be runs shows that some are left out. A member in the middle of the family has links
    # to both sides, so each direction has a limit of its own.
    for _ in range(_MOST_ROUNDS):
        if not frontier:
            break
        edges, partly = await _links(tx, frontier, limit)
        cut.update(partly)
        frontier = growth.grow(edges, await _visible(tx, edges, within))
    cut.update(frontier)  # not looked at
    rows = await tx.fetch("family_runs", [(id,) for id in growth.ids])
    return growth.family({run.id: run for run in map(_member, rows)}, cut)


async def _links(tx: Tx, frontier: Sequence[str], limit: int) -> tuple[list[Edge], list[str]]:
    """Return the links of these runs; and, if there are more than `limit` in a direction, all of these runs that have
    one there: nobody knows whose are missing."""
    rows = await tx.fetch("family_links", [(id,) for id in frontier], most=limit + 1)
    sides: dict[int, list[Row]] = {}
    for row in rows:
        sides.setdefault(row[0], []).append(row)
    partly = [str(row[1]) for side in sides.values() if len(side) > limit for row in side]
    return [_edge(row) for row in rows], partly


def _edge(row: Row) -> Edge:
    side, own, other, kind = row
    earlier, later = (str(other), str(own)) if side % 2 == 0 else (str(own), str(other))
    kinship = (Kinship.DEPENDENCY, Kinship.REPLICA, Kinship.RETRY)[side // 2]
    return earlier, later, kinship, written(kind)[0] if kinship is Kinship.DEPENDENCY else None


async def _visible(tx: Tx, edges: Sequence[Edge], within: Scope | None) -> set[str]:
    ids = {id for edge in edges for id in edge[:2]}
    return ids if within is None else await of_scope(tx, sorted(ids), within)


def _member(row: Row) -> FamilyRun:
    (id, job, state, queue, kind, scope, schedule, attempt, worker, created_at, run_at, started_at, finished_at,
     done) = row  # fmt: skip
    return FamilyRun(
        id=str(id),
        job=job,
        state=RunState(state),
        queue=queue,
        scope=Scope(kind, scope),
        schedule=schedule,
        attempt=attempt,
        worker_id=worker,
        created_at=instant(created_at),
        run_at=instant(run_at),
        started_at=maybe_instant(started_at),
        finished_at=maybe_instant(finished_at),
        percentage=percentage_of(done),
    )
