"""In-memory cache of schedule definitions, keyed by mark: id, number of changes, and time of the last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from rota.store.databases.database import Row, Tx
from rota.store.schedules.schedule_row import ScheduleRow

_MOST = 20_000

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
