"""The last runs of some schedules, all in one question."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.recent import Planned, Recent, recent_of
from rota.store.database import Row, Tx
from rota.store.schedule_rows import decoded
from rota.store.walking import walk_indexes

MOST_SCOPES = 10
"""Of one schedule, whose runs are looked at."""


async def recent(tx: Tx, names: Sequence[str], limit: int) -> dict[str, Recent]:
    """Of those that there are, by name."""
    await walk_indexes(tx)
    lanes: list[Row] = []
    known: dict[str, str] = {}
    for id, name, text in await tx.fetch("definitions_by_name", [(name,) for name in names]):
        known[str(id)] = name
        definition = decoded(text)
        if definition.provider is None:
            lanes += [(str(id), scope.kind, scope.id) for scope in definition.lanes[:MOST_SCOPES]]
        else:
            lanes += [(str(id), *row) for row in await tx.fetch("some_scopes", id=id, limit=MOST_SCOPES)]
    found: dict[str, list[Planned]] = {id: [] for id in known}
    for schedule_id, run_id, *facts in await tx.fetch("recent_runs", lanes, limit=limit) if lanes else ():
        found[str(schedule_id)].append(Planned(str(run_id), *facts))
    return {known[id]: recent_of(runs, limit) for id, runs in found.items()}
