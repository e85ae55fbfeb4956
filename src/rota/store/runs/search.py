"""Runs that match a filter, newest first, without looking through all there are at once.

Ids are taken from an index in windows, and each window is looked at by the whole filter, in a transaction of its own.
Windows grow while little is found. Whoever cannot wait gets what was found until then, and where to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec

from rota.core.runs.admission import Hold, is_queued
from rota.core.runs.bulk import Counted, Found
from rota.core.runs.claim import LAST_ID, NIL_ID
from rota.core.runs.run import Run, RunFilter
from rota.core.runs.search import RunPage, ShownFilter, tells
from rota.core.states import FINAL_STATES, RunState
from rota.store.databases.database import Database, Row, Tx
from rota.store.runs import read
from rota.store.runs.filter import Selection, selection_of
from rota.values.scope import Scope

_UNSUCCESSFUL = FINAL_STATES - {RunState.SUCCEEDED}
_READY = {
    RunState.SCHEDULED: tuple(int(hold) for hold in Hold if not is_queued(hold)),
    RunState.QUEUED: tuple(int(hold) for hold in Hold if is_queued(hold)),
}
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
    """Compare keys as a range: with a plain `key = value`, PostgreSQL would rather walk all ids, and look which of them
    have it.
    """
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
        ids = [str(id) for id, *_ in await tx.fetch_sql(self.statement, span=span, **values)]
        return sorted(ids, reverse=True)

    @property
    def statement(self) -> str:
        each = [f"select * from ({self._walk(part)}) as part_{no}" for no, part in enumerate(self.parts)]
        if len(each) == 1:
            return self._walk(self.parts[0])
        order = " order by id desc" if self.sorted else ""
        return f"select id from ({' union all '.join(each)}) as together{order} limit :span"

    def _walk(self, part: Part) -> str:
        return f"select {part.id} as id from {part.table} where {part.walk or part.where} limit :span"


def sources_of(query: RunFilter) -> list[Source]:
    """List sources that hold all that match, those that may well be the smallest first; none: only all runs do."""
    sources = [*_by_origin(query), *_by_fingerprint(query), *_by_state(query.states)]
    return [*sources, *([Source((_by_key("rota_run", "job", ":job", "id"),))] if query.job is not None else [])]


def _by_origin(query: RunFilter) -> Iterable[Source]:
    if query.parent is not None:
        yield Source((Part("rota_run", "parent_id = :parent", "id"),))
    if query.schedule is not None:  # a run that repeats another is not in the index of plan times
        first, again = (f"{_NAMED} and retry_of is {whether}" for whether in ("null", "not null"))
        yield Source((Part("rota_run", first, "id"), Part("rota_run", again, "id")))


def _by_fingerprint(query: RunFilter) -> Iterable[Source]:
    if query.fingerprint is not None and all(state in FINAL_STATES for state in query.states):
        yield Source((Part("rota_fault", "fingerprint = :fingerprint", walk="{one_fingerprint}"),))


def _by_state(states: Sequence[RunState]) -> Iterable[Source]:
    """Live runs are in tables of their own, and ends that were no success in an index; successes are in neither."""
    if not states or RunState.SUCCEEDED in states:
        return
    chosen = dict.fromkeys(states)
    held = [_by_id(table, where) for state in chosen for table, where in _HELD.get(state, ())]
    held += [_by_key("rota_fault", "state", f"'{state.value}'") for state in chosen if state in _UNSUCCESSFUL]
    holds = [hold for state in chosen for hold in _READY.get(state, ())]
    if holds and not held:  # each hold has an index; none of them is in the order of ids
        yield Source(tuple(Part("rota_ready", f"hold = {hold}") for hold in holds))
    yield Source((*held, *([_by_id("rota_ready", "hold >= 0")] if holds else [])))


_SMALL = 1_000
"""A source with fewer ids than this is read whole, whatever others there are."""
_FIRST, _LARGEST, _GROWTH = 200, 20_000, 5
_LARGEST_SHOWN, _SHOWN_A_SECOND, _AT_ONCE = 2_000, 20_000, 200
"""Where it depends on what is shown of them, all that match in a window must be read. How far a search comes must not
tell how many they were: so it ends after so many ids, and the time that reading takes does not count."""
_CLAIMED = (RunState.RUNNING, RunState.WAITING, RunState.CANCELLING)

_RANDOM_BITS = 80
"""Of an id; those before them are its millisecond."""
_OWN_BEFORE = (
    "select id from rota_run where id >= :floor and id < :before and scope_kind = :kind and scope_id = :scope "
    "order by id desc limit 1"
)

_DURATION = "case when finished_at > started_at then finished_at - started_at end"

ALL = "select id from rota_run where id >= :floor and id < :before order by id desc limit 1 offset :span"


class Searching:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, query: RunFilter, limit: int, before: str | None, patience: float | None = None) -> RunPage:
        """Full, unless there are no more, or `patience` (seconds) came to its end."""
        search = _Search(self._database, query, "id", max(_FIRST, 2 * limit), before)
        ids: list[str] = []
        while len(ids) < limit and (window := await search.step(patience)) is not None:
            ids += [str(id) for id, *_ in window]
        full = len(ids) > limit or (len(ids) == limit and search.following is not None)
        following = ids[limit - 1] if full else await self._own_place(search.following, query.scope)
        return RunPage(await self.runs(ids[:limit]), following)

    async def _own_place(self, following: str | None, scope: Scope | None) -> str | None:
        """Return where to go on, without the id of a run of another scope: a window ends at any run.

        Behind the scope's own run before it, or else at the first id of its millisecond: nothing of the scope between.
        """
        if following is None or scope is None:
            return following
        floor = str(UUID(int=UUID(following).int >> _RANDOM_BITS << _RANDOM_BITS))
        bounds = {"floor": floor, "before": following, "kind": scope.kind, "scope": scope.id}
        for (own,) in await self._database.read(lambda tx: tx.fetch_sql(_OWN_BEFORE, **bounds)):
            return str(UUID(int=UUID(str(own)).int + 1))
        return floor

    async def count(
        self, query: RunFilter, most: int, patience: float | None = None, *, run_time: bool = False
    ) -> Counted:
        """Count runs, and sum up their durations if `run_time`. Not exact if there are more than `most`, or `patience`
        came to its end."""
        if patience is None and not run_time and query.job is not None and query == _of_job(query):
            return await self._count_of_job(query, most)
        search = _Search(self._database, query, f"id, {_DURATION}" if run_time else "id", _SMALL)
        count, micros = 0, 0
        while count <= most and (window := await search.step(patience)) is not None:
            count += len(window)
            micros += sum(took or 0 for _, took in window) if run_time else 0
        exact = count <= most and search.following is None
        return Counted(min(count, most), exact=exact, run_time_ms=micros // 1_000 if run_time else None)

    async def _count_of_job(self, query: RunFilter, most: int) -> Counted:
        """Count in one go: that is quick where indexes and rows say by themselves all that is asked."""
        selection = selection_of(query, self._database.clock)
        sql = f"select count(*) from (select 1 from rota_run {selection.where} limit :enough) as found"
        ((count,),) = await self._database.read(lambda tx: tx.fetch_sql(sql, **selection.values, enough=most + 1))
        return Counted(min(count, most), exact=count <= most)

    async def find(self, query: RunFilter, most: int | None) -> list[Found]:
        """Return all that match, newest first; it stops when there are more than `most`."""
        search = _Search(self._database, query, "id, state", _SMALL)
        matches: list[Found] = []
        while (most is None or len(matches) <= most) and (window := await search.step()) is not None:
            matches += [Found(str(id), state in _CLAIMED) for id, state in window]
        return matches

    async def runs(self, run_ids: Sequence[str]) -> list[Run]:
        """Return those of these runs that are still there, newest first."""
        return await _runs(self._database, run_ids)


async def _runs(database: Database, run_ids: Sequence[str]) -> list[Run]:
    async def body(tx: Tx) -> list[Run]:
        return await read.runs_by_id(tx, run_ids)

    return await database.read(body) if run_ids else []


def _of_job(query: RunFilter) -> RunFilter:
    """Return the filter without all but the job and the time."""
    return RunFilter(job=query.job, created_before=query.created_before)


class _Search:
    """One search: where it is, and the source that was chosen for it. `following`: where the next window begins."""

    def __init__(
        self, database: Database, query: RunFilter, columns: str, span: int, before: str | None = None
    ) -> None:
        self._database = database
        self._query = query
        self._selection = selection_of(query, database.clock)
        self._columns = columns
        self._largest = _LARGEST_SHOWN if isinstance(query, ShownFilter) else _LARGEST
        self._span = span
        self._sources: Sequence[Source] | None = sources_of(query)
        self._source: Source | None = None
        self._floor = str(self._selection.values.get("first_id", NIL_ID))
        self._began = database.clock.monotonic()
        self._looked_at = 0
        self.following: str | None = min(before or LAST_ID, str(self._selection.values.get("last_id", LAST_ID)))

    async def step(self, patience: float | None = None) -> list[Row] | None:
        """Return what matches in the next window, newest first; None: there are no more, or it took long enough."""
        # The first window is read whatever the patience, so that each call comes forward.
        before = self.following
        if before is None or (self._sources is None and patience is not None and self._is_over(patience)):
            return None
        self._looked_at += self._span

        # A transaction per window: one snapshot for the whole search would keep SQLite's log and PostgreSQL's dead rows
        # from being cleaned up as long as it lasts.
        async def body(tx: Tx) -> tuple[list[Row], str | None]:
            return await self._window(tx, before)

        rows, self.following = await self._database.read(body)
        self._sources = None
        self._span = min(self._largest, self._span * _GROWTH)
        return await self._shown(rows, self._query) if isinstance(self._query, ShownFilter) else rows

    def _is_over(self, patience: float) -> bool:
        if isinstance(self._query, ShownFilter) and self._looked_at >= patience * _SHOWN_A_SECOND:
            return True
        return self._database.clock.monotonic() - self._began >= patience

    async def _shown(self, rows: Sequence[Row], query: ShownFilter) -> list[Row]:
        """Always the whole window: where it ends does not depend on what matched in it."""
        paused = self._database.clock.monotonic()
        matching: set[str] = set()
        for place in range(0, len(rows), _AT_ONCE):
            runs = await _runs(self._database, [str(id) for id, *_ in rows[place : place + _AT_ONCE]])
            matching |= {run.id for run in runs if tells(run, query)}
        self._began += self._database.clock.monotonic() - paused
        return [row for row in rows if _id_of(row) in matching]

    async def _window(self, tx: Tx, before: str) -> tuple[list[Row], str | None]:
        if self._sources is not None:
            whole = await self._choose(tx, self._sources, before)
            if whole is not None:
                return await self._matching(tx, [id for id in whole if id < before]), None
        if self._source is None:
            return await self._among_all(tx, before)
        ids = await self._source.ids(tx, self._span, **self._bounds(before))
        return await self._matching(tx, ids), ids[-1] if len(ids) == self._span else None

    async def _choose(self, tx: Tx, sources: Sequence[Source], before: str) -> list[str] | None:
        """The ids of one that can be read whole, if there is one; else the first is taken that can be walked."""
        self._source = next((source for source in sources if source.sorted), None)
        # The only source there is, if it can be walked, need not be tried: a walk reads no more than is asked for.
        for source in () if list(sources) == [self._source] else sources:
            ids = await source.ids(tx, _SMALL, **self._bounds(before))
            if len(ids) < _SMALL:
                return ids
        return None

    def _bounds(self, before: str) -> dict[str, object]:
        return {**self._selection.values, "floor": self._floor, "before": before}

    async def _among_all(self, tx: Tx, before: str) -> tuple[list[Row], str | None]:
        # The window is bounded by ids before the filter is applied. With a limit on matches, a filter that nothing
        # matches would read the whole table in one statement.
        ends = await tx.fetch_sql(ALL, span=self._span - 1, floor=self._floor, before=before)
        low = next((str(id) for (id,) in ends), None)
        bounds = {"floor": low or self._floor, "before": before}
        return await self._rows(tx, self._selection.narrowed("id >= :floor and id < :before", **bounds)), low

    async def _matching(self, tx: Tx, ids: Sequence[str]) -> list[Row]:
        return await self._rows(tx, self._selection.narrowed("{among_ids}", ids=",".join(ids))) if ids else []

    async def _rows(self, tx: Tx, selection: Selection) -> list[Row]:
        """Put in order here: a database that is asked for the newest few would rather walk all runs to find them."""
        rows = await tx.fetch_sql(f"select {self._columns} from rota_run_now {selection.where}", **selection.values)
        return sorted(rows, key=_id_of, reverse=True)


def _id_of(row: Row) -> str:
    """Return the run that a row begins with."""
    id, *_ = row
    return str(id)
