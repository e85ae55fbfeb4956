"""Scopes that a provider named, and from when to when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.core.planning.tick import Tick
from rota.store.databases.database import Tx
from rota.store.schedules.schedule_row import ScheduleRow
from rota.values.scope import Scope


async def newcomers_of(
    tx: Tx, rows: Sequence[ScheduleRow], scopes: Mapping[str, Sequence[Scope]]
) -> dict[str, frozenset[Scope]]:
    """Scopes that a provider names for the first time, of schedules that have been planned before."""
    newcomers = {}
    for row in rows:
        if row.provider and row.fired:
            # A statement for each of them: few schedules have a provider.
            newcomers[row.id] = frozenset(scopes[row.id]).difference(await open_scopes(tx, row.id))
    return newcomers


async def note_spans(tx: Tx, named: Sequence[tuple[ScheduleRow, Sequence[Scope], Tick]]) -> None:
    """A scope counts from the first plan time that it got: what was due before is not its own."""
    begun, ended = [], []
    for row, scopes, tick in named:
        # Read under the lock of the cursor, which everybody has who writes spans.
        current = set(await open_scopes(tx, row.id))
        since = {planned.scope: planned.plan_time - 1 for planned in reversed(tick.planned)} if row.fired else {}
        first = tick.cursor if row.fired else row.cursor_at
        # While a catch-up goes on, a newcomer has not come yet.
        fresh = [scope for scope in scopes if scope not in current and (scope in since or not since)]
        begun += [(row.id, scope.kind, scope.id, since.get(scope, first)) for scope in fresh]
        ended += [(row.id, scope.kind, scope.id, row.cursor_at) for scope in current.difference(scopes)]
    if begun:
        await tx.fetch("insert_spans", begun)
    if ended:
        await tx.fetch("close_spans", ended)


async def open_scopes(tx: Tx, schedule_id: str) -> list[Scope]:
    return [Scope(kind, name) for kind, name, _ in await tx.fetch("open_spans", id=schedule_id)]
