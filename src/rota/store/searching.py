"""Runs that match a filter, newest first, without looking through all there are at once.

Ids are taken from an index in windows, and each window is looked at by the whole filter, in a transaction of its own.
Windows grow while little is found. Whoever cannot wait gets what was found until then, and where to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from rota.core.bulking import Counted, Found
from rota.core.claims import LAST_ID, NIL_ID
from rota.core.model import Run, RunFilter
from rota.core.scope import Scope
from rota.core.searching import RunPage, ShownFilter, tells
from rota.core.states import RunState
from rota.store import reading
from rota.store.database import Database, Row, Tx
from rota.store.selecting import Selection, selection_of
from rota.store.sources import Source, sources_of

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

ALL = "select id from rota_run where id >= :floor and id < :before order by id desc limit 1 offset :span"


class Searching:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, wanted: RunFilter, limit: int, before: str | None, patience: float | None = None) -> RunPage:
        """Full, unless there are no more, or `patience` (seconds) came to its end."""
        search = _Search(self._database, wanted, "id", max(_FIRST, 2 * limit), before)
        found: list[str] = []
        while len(found) < limit and (window := await search.step(patience)) is not None:
            found += [str(row[0]) for row in window]
        full = len(found) > limit or (len(found) == limit and search.following is not None)
        following = found[limit - 1] if full else await self._own_place(search.following, wanted.scope)
        return RunPage(await self.runs(found[:limit]), following)

    async def _own_place(self, following: str | None, scope: Scope | None) -> str | None:
        """Where to go on, told without the id of a run of another scope: a window ends at any run.

        Behind the scope's own run before it, or else at the first id of its millisecond: nothing of the scope between.
        """
        if following is None or scope is None:
            return following
        floor = str(UUID(int=UUID(following).int >> _RANDOM_BITS << _RANDOM_BITS))
        bounds = {"floor": floor, "before": following, "kind": scope.kind, "scope": scope.id}
        rows = await self._database.read(lambda tx: tx.fetch_sql(_OWN_BEFORE, **bounds))
        return str(UUID(int=UUID(str(rows[0][0])).int + 1)) if rows else floor

    async def count(self, wanted: RunFilter, most: int, patience: float | None = None) -> Counted:
        """Not exact if there are more than `most`, or `patience` came to its end."""
        if patience is None and wanted.job is not None and wanted == _of_job(wanted):
            return await self._count_of_job(wanted, most)
        search = _Search(self._database, wanted, "id", _SMALL)
        count = 0
        while count <= most and (window := await search.step(patience)) is not None:
            count += len(window)
        return Counted(min(count, most), exact=count <= most and search.following is None)

    async def _count_of_job(self, wanted: RunFilter, most: int) -> Counted:
        """In one go: that is quick where nothing has to be looked at but what indexes and rows say by themselves."""
        chosen = selection_of(wanted, self._database.clock)
        sql = f"select count(*) from (select 1 from rota_run {chosen.where} limit :enough) as found"
        rows = await self._database.read(lambda tx: tx.fetch_sql(sql, **chosen.values, enough=most + 1))
        count = int(rows[0][0])
        return Counted(min(count, most), exact=count <= most)

    async def find(self, wanted: RunFilter, most: int | None) -> list[Found]:
        """All that match, newest first; it stops when there are more than `most`."""
        search = _Search(self._database, wanted, "id, state", _SMALL)
        found: list[Found] = []
        while (most is None or len(found) <= most) and (window := await search.step()) is not None:
            found += [Found(str(id), state in _CLAIMED) for id, state in window]
        return found

    async def runs(self, run_ids: Sequence[str]) -> list[Run]:
        """Those that are still there, newest first."""
        return await _runs(self._database, run_ids)


async def _runs(database: Database, run_ids: Sequence[str]) -> list[Run]:
    async def body(tx: Tx) -> list[Run]:
        return await reading.runs_by_id(tx, run_ids)

    return await database.read(body) if run_ids else []


def _of_job(wanted: RunFilter) -> RunFilter:
    """What it asks of the job and the time alone."""
    return RunFilter(job=wanted.job, created_before=wanted.created_before)


class _Search:
    """One search: where it is, and the source that was chosen for it. `following`: where the next window begins."""

    def __init__(
        self, database: Database, wanted: RunFilter, columns: str, span: int, before: str | None = None
    ) -> None:
        self._database = database
        self._wanted = wanted
        self._chosen = selection_of(wanted, database.clock)
        self._columns = columns
        self._largest = _LARGEST_SHOWN if isinstance(wanted, ShownFilter) else _LARGEST
        self._span = span
        self._sources: Sequence[Source] | None = sources_of(wanted)
        self._source: Source | None = None
        self._floor = str(self._chosen.values.get("first_id", NIL_ID))
        self._began = database.clock.monotonic()
        self._looked_at = 0
        self.following: str | None = min(before or LAST_ID, str(self._chosen.values.get("last_id", LAST_ID)))

    async def step(self, patience: float | None = None) -> list[Row] | None:
        """What matches in the next window, newest first. None: there are no more, or it has taken long enough."""
        before = self.following
        if before is None or (self._sources is None and patience is not None and self._is_over(patience)):
            return None
        self._looked_at += self._span

        async def body(tx: Tx) -> tuple[list[Row], str | None]:
            return await self._window(tx, before)

        rows, self.following = await self._database.read(body)
        self._sources = None
        self._span = min(self._largest, self._span * _GROWTH)
        return await self._shown(rows, self._wanted) if isinstance(self._wanted, ShownFilter) else rows

    def _is_over(self, patience: float) -> bool:
        if isinstance(self._wanted, ShownFilter) and self._looked_at >= patience * _SHOWN_A_SECOND:
            return True
        return self._database.clock.monotonic() - self._began >= patience

    async def _shown(self, rows: Sequence[Row], wanted: ShownFilter) -> list[Row]:
        """Always the whole window: where it ends does not depend on what matched in it."""
        paused = self._database.clock.monotonic()
        kept: set[str] = set()
        for place in range(0, len(rows), _AT_ONCE):
            runs = await _runs(self._database, [str(row[0]) for row in rows[place : place + _AT_ONCE]])
            kept |= {run.id for run in runs if tells(run, wanted)}
        self._began += self._database.clock.monotonic() - paused
        return [row for row in rows if str(row[0]) in kept]

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
        self._source = next((one for one in sources if one.sorted), None)
        for source in () if list(sources) == [self._source] else sources:
            ids = await source.ids(tx, _SMALL, **self._bounds(before))
            if len(ids) < _SMALL:
                return ids
        return None

    def _bounds(self, before: str) -> dict[str, object]:
        return {**self._chosen.values, "floor": self._floor, "before": before}

    async def _among_all(self, tx: Tx, before: str) -> tuple[list[Row], str | None]:
        ends = await tx.fetch_sql(ALL, span=self._span - 1, floor=self._floor, before=before)
        low = str(ends[0][0]) if ends else None
        bounds = {"floor": low or self._floor, "before": before}
        return await self._rows(tx, self._chosen.narrowed("id >= :floor and id < :before", **bounds)), low

    async def _matching(self, tx: Tx, ids: Sequence[str]) -> list[Row]:
        return await self._rows(tx, self._chosen.narrowed("{among_ids}", ids=",".join(ids))) if ids else []

    async def _rows(self, tx: Tx, chosen: Selection) -> list[Row]:
        """Put in order here: a database that is asked for the newest few would rather walk all runs to find them."""
        found = await tx.fetch_sql(f"select {self._columns} from rota_run_now {chosen.where}", **chosen.values)
        return sorted(found, key=lambda row: str(row[0]), reverse=True)
