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
Said = Mapping[Mark, Row]

NOTHING_SAID: Said = {}


class CachedDefinition(msgspec.Struct, frozen=True, gc=False):
    """Definition of a schedule under one mark; `said` in the order of `ScheduleRow`, with its name and text."""

    mark: Mark
    said: Row
    name: str
    text: str


Read = Mapping[int, CachedDefinition]
"""What was not known, by the numbers of their cursors."""
NOTHING_READ: Read = {}


class DefinitionCache(dict[Mark, Row]):
    """Definitions that were read last. Only what was committed is kept: else another change could get the same mark."""

    def keep(self, sayings: Iterable[CachedDefinition]) -> None:
        self.update((one.mark, one.said) for one in sayings)
        if len(self) > _MOST:
            for mark in list(self)[: len(self) - _MOST // 2]:
                self.pop(mark, None)


def known_of(marked: Sequence[Row], known: Said) -> list[Row | None]:
    """Return the definitions of rows whose mark is known. Once: meanwhile others may be kept in their place."""
    return [known.get((id, times, at)) for _, id, times, at, *_ in marked]


async def read_unknown(tx: Tx, marked: Sequence[Row], said: Sequence[Row | None]) -> Read:
    """Read the definitions that are not known, of rows that begin with the number of a cursor and a mark."""
    unknown = [(no,) for (no, *_), one in zip(marked, said, strict=True) if one is None]
    return dict(map(_saying, await tx.fetch("say", unknown))) if unknown else NOTHING_READ


def schedule_rows(marked: Sequence[Row], said: Sequence[Row | None], read: Read) -> list[ScheduleRow]:
    """The mark is followed by what planning writes. A cursor whose schedule is gone is nothing to plan."""
    rows: list[ScheduleRow] = []
    for (no, _, _, _, *planned), one in zip(marked, said, strict=True):
        if one is not None:
            rows.append(ScheduleRow(*one, *planned))
        elif no in read:
            rows.append(ScheduleRow(*read[no].said, *planned))
    return rows


def _saying(row: Row) -> tuple[int, CachedDefinition]:
    """Return the number of a schedule's cursor, and its definition."""
    id, said_times, said_at, no, _, name, text, *others = row
    said = (no, id, name, _shared(text), *others)
    return no, CachedDefinition((id, said_times, said_at), said, str(name), str(text))


@lru_cache(maxsize=_MOST)
def _shared(text: str) -> str:
    """Thousands of schedules may say the same: it is kept once."""
    return text
