"""P1, P3, P4 at every commit: each step of a schedule is one that the model of planning has.

`schedules` asks at the end whether each plan time has one answer; here, each commit that decides plan times must bring
all their answers with it, and a revision must begin where everything before it is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rota.values.scope import GLOBAL
from tests.models.planner_relation import Planned, allowed, step
from tests.simulation.checks.schedules import named_instants

if TYPE_CHECKING:
    from tests.simulation.world.observer import Finding, Looks

_CURSORS = """
select s.id, s.name, s.cursor_at, s.next_plan, (
    select count(*) from rota_revision v where v.schedule_id = s.id and v.active = 1)
from rota_schedule_now s where s.deleted_at is null order by s.id
"""
_REVISIONS = "select schedule_id, valid_from, definition, active from rota_revision order by schedule_id, no"
_ANSWERS = """
select schedule_id, scope_kind, scope_id, count(*) + coalesce(sum(missed_count), 0) from rota_run
where schedule_id is not null and plan_time is not null and retry_of is null
group by schedule_id, scope_kind, scope_id
union all
select schedule_id, scope_kind, scope_id, sum(count) from rota_range group by schedule_id, scope_kind, scope_id
"""

History = list[tuple[int, dict[str, Any], bool]]


class PlannerModel:
    """Compares schedules with what they were after the commit before."""

    def __init__(self, backend: Looks) -> None:
        self._backend = backend
        self._rows: tuple[Sequence[Any], Sequence[Any]] = ((), ())
        self._known: dict[tuple[str, str], Planned] = {}

    def look_anew(self) -> None:
        """Know nothing but what is there now: the database has lost what it was."""
        self._rows, self._known = ((), ()), {}
        list(self.in_the_model())

    def in_the_model(self) -> Iterator[Finding]:
        look = self._backend.look
        rows = (list(map(tuple, look(_CURSORS))), sorted(map(tuple, look(_ANSWERS)), key=str))
        if rows == self._rows:
            return
        first, self._rows = self._rows == ((), ()), rows
        known, self._known = self._known, dict(self._planned(*rows))
        for key, after in self._known.items():
            made = step(known.get(key), after)
            if made is not None and made not in allowed() and not (first and key not in known):
                yield "model", f"no step of tests/models/Planner.tla: schedule {key[0]}, scope {key[1]}: {made}"

    def _planned(
        self, cursors: Sequence[tuple[Any, ...]], answers: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[tuple[str, str], Planned]]:
        histories: dict[str, History] = {}
        for id, valid_from, definition, active in self._backend.look(_REVISIONS) if cursors else ():
            histories.setdefault(str(id), []).append((valid_from, msgspec.json.decode(definition), bool(active)))
        counts: dict[tuple[str, str, str], int] = {}
        for id, kind, name, count in answers:
            key = str(id), str(kind), str(name)
            counts[key] = counts.get(key, 0) + int(count)
        for id, name, cursor, next_plan, _ in cursors:
            history = histories[str(id)]
            if history[0][1]["rule"]["trigger"]["type"] == "after" or "provider" in history[0][1]:
                continue  # what these name is known to nobody else
            begun = tuple(valid_from for valid_from, _, _ in history)
            owed = len(named_instants(history, cursor))
            for scope in history[0][1].get("scopes") or [{"kind": GLOBAL.kind, "id": GLOBAL.id}]:
                own = counts.get((str(id), scope["kind"], scope["id"]), 0)
                # A range of all scopes has no scope.
                every = counts.get((str(id), "", ""), 0) if (scope["kind"], scope["id"]) != ("", "") else 0
                yield (name, f"{scope['kind']}:{scope['id']}"), Planned(cursor, next_plan, begun, owed, own + every)
