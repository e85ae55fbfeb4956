"""The last runs of several schedules, in one query."""

from __future__ import annotations

from collections.abc import Sequence

from rota.core.schedules.recent_runs import Planned, Recent, recent_of, scopes_each
from rota.store.databases.database import Row, Tx
from rota.store.databases.pinned_plans import walk_indexes
from rota.store.schedules.schedule_row import readable

MOST_SCOPES = 10
"""Scopes per schedule whose runs are read, at most."""


async def recent(tx: Tx, names: Sequence[str], limit: int) -> dict[str, Recent]:
    """Return the recent runs, by name, of those of the schedules that exist."""
    await walk_indexes(tx, in_order=True)
    names_by_id: dict[str, str] = {}
    scopes: dict[str, list[Row]] = {}
    provided: list[Row] = []
    for id, name, text in await tx.fetch("definitions_by_name", [(name,) for name in names]):
        definition = readable(text)
        if definition is None:
            continue
        names_by_id[str(id)] = name
        if definition.provider is None:
            scopes[str(id)] = [(scope.kind, scope.id) for scope in definition.lanes[:MOST_SCOPES]]
        else:
            provided.append((str(id),))
    some = await tx.fetch("some_scopes", provided, limit=MOST_SCOPES) if provided else ()
    for id, *scope in sorted(map(tuple, some)):
        scopes.setdefault(str(id), []).append(tuple(scope))
    each = scopes_each([len(own) for own in scopes.values()], limit, MOST_SCOPES)
    lanes = [(id, *scope) for id, own in scopes.items() for scope in own[:each]]
    runs: dict[str, list[Planned]] = {id: [] for id in names_by_id}
    for schedule_id, run_id, *facts in await tx.fetch("recent_runs", lanes, limit=limit) if lanes else ():
        runs[str(schedule_id)].append(Planned(str(run_id), *facts))
    return {names_by_id[id]: recent_of(own, limit) for id, own in runs.items()}
