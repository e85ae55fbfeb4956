"""Where to look for runs that match: indexes that hold all of them, and few others.

What a source gives is looked at once more, by the whole filter: it may hold too many, never too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota.core.model import RunFilter
from rota.core.states import FINAL_STATES, RunState
from rota.store.database import Tx

_FAULTS = FINAL_STATES - {RunState.SUCCEEDED}
_READY = {RunState.SCHEDULED: (1, 3, 4, 5, 7), RunState.QUEUED: (0, 2, 6)}
_HELD = {
    RunState.RUNNING: (("rota_lease", "cancel_at is null"),),
    RunState.WAITING: (("rota_outside", "cancel_at is null"), ("rota_conduct", "cancel_at is null")),
    RunState.CANCELLING: (
        ("rota_lease", "cancel_at is not null"),
        ("rota_outside", "cancel_at is not null"),
        ("rota_conduct", "cancel_at is not null"),
    ),
}
_NAMED = "schedule_id in (select id from rota_schedule where name = :schedule)"


class Part(msgspec.Struct, frozen=True):
    """Ids in one index. `walk`: condition and order of a walk from its newest end; without it, they have no order."""

    table: str
    where: str
    id: str = "run_id"
    walk: str | None = None


def _by_id(table: str, where: str) -> Part:
    return Part(table, where, walk=f"{where} and run_id >= :floor and run_id < :before order by run_id desc")


def _by_key(table: str, key: str, value: str, id: str = "run_id") -> Part:
    """With a plain `key = value`, PostgreSQL would rather walk all ids, and look which of them have it."""
    walk = f"({key}, {id}) >= ({value}, :floor) and ({key}, {id}) < ({value}, :before) order by {key} desc, {id} desc"
    return Part(table, f"{key} = {value}", id, walk)


class Source(msgspec.Struct, frozen=True):
    """`sorted`: its indexes have ids in order, and can be walked a part at a time. One that is not is of use only if it
    is small enough to be read whole."""

    parts: tuple[Part, ...]

    @property
    def sorted(self) -> bool:
        return all(part.walk for part in self.parts)

    async def ids(self, tx: Tx, span: int, **bounds: object) -> list[str]:
        """The `span` newest that are at least `floor` and less than `before`; of one that is not sorted, any."""
        values = bounds if self.sorted else {name: bounds[name] for name in bounds if name not in ("floor", "before")}
        found = [str(row[0]) for row in await tx.fetch_sql(self.statement, span=span, **values)]
        return sorted(found, reverse=True)

    @property
    def statement(self) -> str:
        each = [f"select * from ({self._walk(part)}) as part_{no}" for no, part in enumerate(self.parts)]
        if len(each) == 1:
            return self._walk(self.parts[0])
        order = " order by id desc" if self.sorted else ""
        return f"select id from ({' union all '.join(each)}) as together{order} limit :span"

    def _walk(self, part: Part) -> str:
        return f"select {part.id} as id from {part.table} where {part.walk or part.where} limit :span"


def sources_of(wanted: RunFilter) -> list[Source]:
    """Those that hold all that match, the ones that may well be the smallest first; none: only all runs do."""
    found = [*_by_origin(wanted), *_by_fingerprint(wanted), *_by_state(wanted.states)]
    return [*found, *([Source((_by_key("rota_run", "job", ":job", "id"),))] if wanted.job is not None else [])]


def _by_origin(wanted: RunFilter) -> Iterable[Source]:
    if wanted.parent is not None:
        yield Source((Part("rota_run", "parent_id = :parent", "id"),))
    if wanted.schedule is not None:  # a run that repeats another is not in the index of plan times
        first, again = (f"{_NAMED} and retry_of is {whether}" for whether in ("null", "not null"))
        yield Source((Part("rota_run", first, "id"), Part("rota_run", again, "id")))


def _by_fingerprint(wanted: RunFilter) -> Iterable[Source]:
    if wanted.fingerprint is not None and all(state in FINAL_STATES for state in wanted.states):
        yield Source((Part("rota_fault", "fingerprint = :fingerprint", walk="{one_fingerprint}"),))


def _by_state(states: Sequence[RunState]) -> Iterable[Source]:
    """Live runs are in tables of their own, and ends that were no success in an index; successes are in neither."""
    if not states or RunState.SUCCEEDED in states:
        return
    chosen = dict.fromkeys(states)
    held = [_by_id(table, where) for state in chosen for table, where in _HELD.get(state, ())]
    held += [_by_key("rota_fault", "state", f"'{state.value}'") for state in chosen if state in _FAULTS]
    holds = [hold for state in chosen for hold in _READY.get(state, ())]
    if holds and not held:  # each hold has an index; none of them is in the order of ids
        yield Source(tuple(Part("rota_ready", f"hold = {hold}") for hold in holds))
    yield Source((*held, *([_by_id("rota_ready", "hold >= 0")] if holds else [])))
