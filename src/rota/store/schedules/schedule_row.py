"""A schedule's row as planning and changes hold it, locked, and the cache of its definition, which seldom changes.

The cache is keyed by mark: id, number of changes, and time of the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from rota.core.planning.tick import ScheduleState
from rota.core.schedules.schedule import ScheduleDefinition
from rota.errors import UnreadableSchedule
from rota.store.databases.database import Row, Tx

_MOST = 20_000


@lru_cache(maxsize=_MOST)
def decoded(text: str) -> ScheduleDefinition:
    """Decode a definition. Cached, because thousands of schedules may share their text, and each is planned often."""
    try:
        return msgspec.json.decode(text, type=ScheduleDefinition)
    except msgspec.DecodeError as error:
        raise UnreadableSchedule(str(error)) from None


def readable(text: str) -> ScheduleDefinition | None:
    """Decode a definition. None if a newer rota has written it, so that lists go on without it."""
    try:
        return decoded(text)
    except UnreadableSchedule:
        return None


def encoded(definition: ScheduleDefinition) -> str:
    return msgspec.json.encode(definition, order="deterministic").decode()


class ScheduleRow(msgspec.Struct, frozen=True, gc=False):
    """A schedule's row: its definition, then how far it is planned.

    The fields are in the order of `{schedule_row}` in the statements. `has_lanes`: its lanes hold more than the open
    run tells. `rowid`: where SQLite keeps its cursor, if it was read.
    """

    cursor_no: int
    id: str
    name: str
    text: str
    revision: int
    enabled: int
    paused_at: int | None
    resume_at: int | None
    job_paused: int
    owner: str
    declared: str | None
    has_lanes: int
    cursor_at: int
    next_plan: int | None
    open_plan: int | None
    fired: int
    tzdata: str
    provider: str | None
    awaits: str | None
    rowid: int | None = None

    @property
    def definition(self) -> ScheduleDefinition:
        return decoded(self.text)

    @property
    def active(self) -> bool:
        return bool(self.enabled) and self.paused_at is None and not self.job_paused

    @property
    def names(self) -> bool:
        """Return whether the rule's plan times belong to the schedule: not after the last run that it may have."""
        return self.active and self.standing.room != 0

    @property
    def standing(self) -> ScheduleState:
        return ScheduleState(self.id, self.name, self.definition, self.cursor_at, self.next_plan, self.fired)


def schedule_row(row: Row) -> ScheduleRow:
    """Build the row from the columns of `{schedule_row}`. On PostgreSQL, ids are UUIDs and not texts."""
    cursor_no, id, *facts, awaits = row
    return ScheduleRow(*(cursor_no, str(id), *facts, None if awaits is None else str(awaits)))


Mark = Row
"""Its id, how often its row was changed, and when: a database put back to an earlier state may count the same again."""
Definitions = Mapping[Mark, Row]

NO_DEFINITIONS: Definitions = {}


class CachedDefinition(msgspec.Struct, frozen=True, gc=False):
    """Definition of a schedule under one mark; `values` in the order of `ScheduleRow`, with its name and text."""

    mark: Mark
    values: Row
    name: str
    text: str


Read = Mapping[int, CachedDefinition]
"""What was not known, by the numbers of their cursors."""
NOTHING_READ: Read = {}


class DefinitionCache(dict[Mark, Row]):
    """Definitions that were read last. Only what was committed is kept: else another change could get the same mark."""

    def keep(self, definitions: Iterable[CachedDefinition]) -> None:
        self.update((definition.mark, definition.values) for definition in definitions)
        if len(self) > _MOST:
            # Half of it, the oldest first: one at a time, each planning step would copy the list of all marks.
            for mark in list(self)[: len(self) - _MOST // 2]:
                self.pop(mark, None)


def look_up(marked: Sequence[Row], cache: Definitions) -> list[Row | None]:
    """Return the definitions of rows whose mark is known. Once: meanwhile others may be kept in their place."""
    # Nothing is ever invalidated: every change counts up the mark in its own transaction, so that a mark stands for one
    # definition for ever.
    return [cache.get((id, times, at)) for _, id, times, at, *_ in marked]


async def read_unknown(tx: Tx, marked: Sequence[Row], cached: Sequence[Row | None]) -> Read:
    """Read the definitions that are not known, of rows that begin with the number of a cursor and a mark."""
    unknown = [(no,) for (no, *_), definition in zip(marked, cached, strict=True) if definition is None]
    return dict(map(_definition_of, await tx.fetch("say", unknown))) if unknown else NOTHING_READ


def schedule_rows(marked: Sequence[Row], cached: Sequence[Row | None], read: Read) -> list[ScheduleRow]:
    """The mark is followed by what planning writes. A cursor whose schedule is gone is nothing to plan."""
    rows: list[ScheduleRow] = []
    for (no, _, _, _, *planned), definition in zip(marked, cached, strict=True):
        if definition is not None:
            rows.append(ScheduleRow(*definition, *planned))
        elif no in read:
            rows.append(ScheduleRow(*read[no].values, *planned))
    return rows


def _definition_of(row: Row) -> tuple[int, CachedDefinition]:
    """Return the number of a schedule's cursor, and its definition."""
    id, changes, changed_at, no, _, name, text, *columns = row
    values = (no, id, name, _shared(text), *columns)
    return no, CachedDefinition((id, changes, changed_at), values, str(name), str(text))


@lru_cache(maxsize=_MOST)
def _shared(text: str) -> str:
    """Thousands of schedules may say the same: it is kept once."""
    return text
