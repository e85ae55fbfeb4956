"""Promotion: move everything from an SQLite file to PostgreSQL, exactly once, however often it is interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

import msgspec

from rota.errors import Conflict, DatabaseMoved, Invalid, PromotionUnfinished
from rota.store import Database, Store, new_id
from rota.store.databases.database import Row
from rota.store.databases.statements import POSTGRES, SQLITE
from rota.store.promotion import source as source_side
from rota.store.promotion import target as target_side
from rota.store.promotion.catalogue import Catalogue, Key, Table, catalogue_of, counts_of
from rota.store.promotion.mark import PromotionMark, has_migrations, mark_of
from rota.store.promotion.source import FileInUse
from rota.store.promotion.target import TableProgress
from rota.store.schema.migrate import migrate, require_own

_ROWS = 10_000
_SIZE = 16_777_216
_REST = 1.0
_EXAMPLE = "rota promote --database sqlite:///rota.db --to postgresql://user@host/name"
_ABANDON = "`rota promote --abandon` makes the file usable again"


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a promotion: rows per table, the number of ledgers verified, and whether it had `already` been done."""

    to: str
    tables: dict[str, int]
    ledgers: int = 0
    already: bool = False

    @property
    def rows(self) -> int:
        return sum(self.tables.values())


class Moved(msgspec.Struct, frozen=True):
    """Progress of a promotion: the table being copied, and rows copied of the total."""

    table: str
    rows: int
    total: int


def place_of(url: str) -> str:
    """Return the address of a database without its credentials."""
    parts = urlsplit(url)
    return f"postgresql://{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}{parts.path}"


class Promotion:
    """Promotion from `source`, an SQLite file, to `target`, PostgreSQL. `tell` is called after every batch. Each step
    can be repeated after a crash."""

    def __init__(
        self,
        source: Database,
        target: Database,
        place: str,
        tell: Callable[[Moved], None] = lambda moved: None,
        *,
        rows: int = _ROWS,
        actor: str | None = None,
    ) -> None:
        if source.dialect is not SQLITE or target.dialect is not POSTGRES:
            raise Invalid("a promotion needs SQLite as source and PostgreSQL as target", hint=_EXAMPLE)
        self._source = source
        self._target = target
        self._place = place
        self._tell = tell
        self._rows = rows
        self._actor = actor

    async def look(self) -> Promoted:
        """Return what a promotion would move, or raise why it cannot; change nothing."""
        mark = await self._source.read(mark_of)
        if mark is None:
            await require_own(self._source)
            await self._source.read(source_side.require_idle)
            await self._source.read(source_side.require_storable)
        if await self._target.read(has_migrations):
            await self._check_target(mark)
        return Promoted(to=self._place, tables=await self._counts(self._source))

    async def _check_target(self, mark: PromotionMark | None) -> None:
        """Check the target. One with tables must have this version's schema and be empty, unless this promotion is
        filling it."""
        target_mark = await self._target.read(mark_of)
        if target_mark is not None:
            if mark is None or target_mark.id != mark.id:
                raise PromotionUnfinished(target_mark.place)
            return
        await require_own(self._target)
        if mark is None or await self._target.read(target_side.filled_by) != mark.id:
            await self._target.read(target_side.require_empty)

    async def promote(self, wait: timedelta | None = None) -> Promoted:
        """Move everything. `wait` is how long to wait for workers to stop and leases to expire."""
        mark = await self._source.read(mark_of)
        if mark is None:
            await migrate(self._source)
        if await self._target.read(mark_of) is None:
            await migrate(self._target)
        await self._check_target(mark)
        mark = mark or await self._freeze(wait)
        if await self._target.read(target_side.filled_by) == mark.id:
            await self._source.transact(lambda tx: source_side.leave(tx, mark))
            return Promoted(to=self._place, tables=await self._counts(self._source), already=True)
        await self._require_same_target(mark)
        await self._target.transact(lambda tx: target_side.begin(tx, PromotionMark("arriving", mark.id, mark.place)))
        await self._copy()
        await self._target.transact(target_side.settle)
        tables = await self._verify_counts()
        ledgers = await self._verify_ledgers()
        # The target is completed before the file is marked as left: after a crash in between, the next call finds the
        # target filled and only marks the file.
        await self._target.transact(lambda tx: target_side.complete(tx, mark, self._actor))
        await self._source.transact(lambda tx: source_side.leave(tx, mark))
        return Promoted(to=self._place, tables=tables, ledgers=ledgers)

    async def abandon(self) -> None:
        """Make the file usable again and empty the target."""
        mark = await self._source.read(mark_of)
        if mark is None:
            raise Conflict("no promotion of this database has been started")
        target_mark = await self._target.read(mark_of)
        if mark.is_over or await self._is_filled_by(mark, target_mark):
            raise DatabaseMoved(mark.place)
        if target_mark is not None and target_mark.id == mark.id:
            await self._target.transact(target_side.undo)
        else:
            self._require_place(mark)
        await self._source.transact(source_side.thaw)

    async def _is_filled_by(self, mark: PromotionMark, target_mark: PromotionMark | None) -> bool:
        if target_mark is not None or not await self._target.read(has_migrations):
            return False
        return await self._target.read(target_side.filled_by) == mark.id

    async def _freeze(self, wait: timedelta | None) -> PromotionMark:
        id, loop = new_id(), asyncio.get_running_loop()
        until = loop.time() + (wait or timedelta()).total_seconds()
        while True:
            try:
                return await self._source.transact(lambda tx: source_side.freeze(tx, id, self._place))
            except FileInUse:
                if loop.time() >= until:
                    raise
                await asyncio.sleep(min(_REST, until - loop.time()))

    async def _require_same_target(self, mark: PromotionMark) -> None:
        """Check that the target is the one the promotion began with. A target with our mark is, however its address is
        spelled."""
        target_mark = await self._target.read(mark_of)
        if mark.is_over:
            raise DatabaseMoved(mark.place)
        if target_mark is None:
            self._require_place(mark)

    def _require_place(self, mark: PromotionMark) -> None:
        if mark.place != self._place:
            raise PromotionUnfinished(mark.place)

    async def _copy(self) -> None:
        catalogue = await self._catalogues()
        counts = await self._counts(self._source)
        total, moved = sum(counts.values()), 0
        reached = await self._target.read(target_side.reached)
        for table in catalogue.tables.values():
            before = moved

            def report(rows: int, name: str = table.name, before: int = before) -> None:
                self._tell(Moved(name, min(before + rows, before + counts[name]), total))

            state = reached.get(table.name, TableProgress())
            if not state.done:
                await self._move(table, state, report)
            moved += counts[table.name]
            self._tell(Moved(table.name, moved, total))

    async def _move(self, table: Table, state: TableProgress, report: Callable[[int], None]) -> None:
        """Copy a table in batches, each in its own transaction. The next batch is read from the file while PostgreSQL
        writes this one."""
        upcoming, count = self._read(table, state.key), 0
        try:
            while not state.done:
                rows = await upcoming
                if rows:
                    upcoming = self._read(table, table.key_of(rows[-1]))
                state = await self._target.transact(partial(target_side.append, table=table, before=state, rows=rows))
                count += len(rows)
                report(count)
        finally:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)

    def _read(self, table: Table, after: Key | None) -> asyncio.Task[list[Row]]:
        read_batch = partial(source_side.bite, table=table, after=after, rows=self._rows, size=_SIZE)
        return asyncio.create_task(self._source.read(read_batch))

    async def _catalogues(self) -> Catalogue:
        """Return the file's tables. The target must have the same ones, except those that are views in SQLite and
        filled by triggers in PostgreSQL."""
        source, target = await self._source.read(catalogue_of), await self._target.read(catalogue_of)
        missing = {*source.tables} ^ ({*target.tables} - {*source.derived})
        differing = {
            name
            for name, table in source.tables.items()
            if name in target.tables and {*table.columns} != {*target.tables[name].columns}
        }
        if missing or differing:
            names = ", ".join(sorted(missing | differing))
            hint = f"continue with the version of rota that started it; {_ABANDON}"
            raise Conflict(f"the tables of the two databases differ: {names}", hint=hint)
        return source

    async def _counts(self, database: Database) -> dict[str, int]:
        names = list((await self._source.read(catalogue_of)).tables)
        return await database.read(lambda tx: counts_of(tx, names))

    async def _verify_counts(self) -> dict[str, int]:
        """Compare row counts of all tables, including those that triggers fill."""
        source, target = await self._source.read(catalogue_of), await self._target.read(catalogue_of)
        names = list(target.tables)
        source_counts = await self._source.read(lambda tx: counts_of(tx, names))
        target_counts = await self._target.read(lambda tx: counts_of(tx, names))
        wrong = [
            f"{name} {source_counts[name]} and {target_counts[name]}"
            for name in names
            if source_counts[name] != target_counts[name]
        ]
        if wrong:
            raise Conflict(f"row counts of the two databases differ: {', '.join(wrong)}", hint=_ABANDON)
        return {name: target_counts[name] for name in source.tables}

    async def _verify_ledgers(self) -> int:
        """Verify every schedule's ledger in the target; return how many. A ledger that is incomplete in both databases
        is not an error of the promotion."""
        source, target = Store(self._source), Store(self._target)
        names = await target.schedules.names()
        for name in names:
            verification = await target.ledger.verify(name, thorough=False)
            if not verification.ok and verification != await source.ledger.verify(name, thorough=False):
                first = verification.findings[0]
                raise Conflict(f"the ledger of schedule {name!r} differs: {first}", hint=_ABANDON)
        return len(names)
