"""Time zones as pieces of constant UTC offset, read from the `tzdata` package so that every machine plans alike."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]  # it has no types

from rota.errors import BadTrigger, did_you_mean

TZDATA_VERSION = str(tzdata.IANA_VERSION)
"""Release of the IANA database, such as 2026a: it is stored with a plan."""
DAY = 86_400
FIRST_YEAR, LAST_YEAR = 1970, 2399
LAST_SECOND = int(datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()) - 1
"""The last second of plan times, which lie in 1970 to 2399; seconds since the epoch, as everywhere in this module."""

_YEAR_STARTS = [int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in range(FIRST_YEAR, LAST_YEAR + 2)]
_PROBE = 2 * DAY  # far less than the shortest time between two changes of any zone since 1970, which is a week
_MARGIN = 4 * DAY  # a change this near to the turn of the year may repeat wall times across it
_LONGEST_NAME = 64


class Transition(NamedTuple):
    """Change of the UTC offset: from the instant `at` on, it is `after`."""

    at: int
    before: int
    after: int


class Piece(NamedTuple):
    """Instants `start` ≤ t < `end`, whose wall time is t + `offset`; cut at changes and at the turn of the year.

    `before` is the offset just before `start`. Wall times below `fresh` have occurred before, those from `repeats` on
    will occur again.
    """

    start: int
    end: int
    offset: int
    before: int
    fresh: int
    repeats: int


class Zone:
    """A time zone. Its years are computed when first asked for, and kept."""

    def __init__(self, name: str, info: ZoneInfo) -> None:
        self.name = name
        self._info = info
        self._years: dict[int, tuple[Piece, ...]] = {}
        self._always = Piece(0, LAST_SECOND + 1, 0, 0, 0, LAST_SECOND + 1) if name == "UTC" else None

    def piece(self, at: int) -> Piece:
        """Return the piece that `at` is in; before 1970 the first, after 2399 the last."""
        if self._always is not None:
            return self._always
        place = min(max(bisect_right(_YEAR_STARTS, at), 1), len(_YEAR_STARTS) - 1)
        pieces = self._years.get(place) or self._compute_year(place)
        for piece in pieces:
            if at < piece.end:
                return piece
        return pieces[-1]

    def offset(self, at: int) -> int:
        return self.piece(at).offset

    def transitions(self, year: int) -> list[Transition]:
        place = year - FIRST_YEAR + 1
        if not 0 < place < len(_YEAR_STARTS) or self._always is not None:
            return []
        pieces = self._years.get(place) or self._compute_year(place)
        return [Transition(piece.start, piece.before, piece.offset) for piece in pieces if piece.before != piece.offset]

    def _compute_year(self, place: int) -> tuple[Piece, ...]:
        start, end = _YEAR_STARTS[place - 1], _YEAR_STARTS[place]
        changes = self._changes(start - _MARGIN, end + _MARGIN)
        inner = [change.at for change in changes if start < change.at < end]
        pieces = [self._cut(*cut, changes) for cut in zip([start, *inner], [*inner, end], strict=True)]
        self._years[place] = year = tuple(pieces)
        return year

    def _cut(self, start: int, end: int, changes: list[Transition]) -> Piece:
        offset = self._offset_at(start)
        before = next((change.before for change in changes if change.at == start), offset)
        wall, wall_end = start + offset, end + offset
        fresh = max([wall, *(change.at + change.before for change in changes if change.at <= start)])
        repeats = min([wall_end, *(change.at + change.after for change in changes if change.at >= end)])
        return Piece(start, end, offset, before, min(fresh, wall_end), max(repeats, wall))

    def _changes(self, start: int, end: int) -> list[Transition]:
        """Return the changes in `start` ≤ t < `end`."""
        changes = []
        at, offset = start - 1, self._offset_at(start - 1)
        while at < end - 1:
            later = min(at + _PROBE, end - 1)
            if self._offset_at(later) != offset:
                change = self._find_change(at, later, offset)
                changes.append(change)
                at, offset = change.at, change.after
            else:
                at = later
        return changes

    def _find_change(self, low: int, high: int, offset: int) -> Transition:
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset_at(middle) == offset:
                low = middle
            else:
                high = middle
        return Transition(high, offset, self._offset_at(high))

    def _offset_at(self, at: int) -> int:
        shift = datetime.fromtimestamp(at, self._info).utcoffset()
        assert shift is not None
        return shift.days * DAY + shift.seconds


def zone(name: str) -> Zone:
    """Return the zone of a name. Only names that the package lists are looked up: no text of a user becomes a path."""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or name not in zone_names():
        raise _unknown(name)
    return _loaded(name)


@cache
def zone_names() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split())


@lru_cache(maxsize=1_000)
def _loaded(name: str) -> Zone:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return Zone(name, ZoneInfo.from_file(data, key=name))


def _unknown(name: object) -> BadTrigger:
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return BadTrigger("that is no time zone's name", field="timezone", hint='write it as in "Europe/Berlin"')
    near = _similar_name(name) or did_you_mean(name, [known for known in zone_names() if "/" in known])
    return BadTrigger(f"no time zone is called {name!a}", field="timezone", hint=near or 'as in "Europe/Berlin"')


def _similar_name(name: str) -> str | None:
    """Suggest the same name in other letters, or the zone of a city. Abbreviations are not compared: CEST and EST look
    alike, and are hours apart.
    """
    ending = name.casefold().replace(" ", "_")
    alike = [known for known in zone_names() if f"/{known}".casefold().endswith(f"/{ending}")]
    return f"did you mean {min(alike, key=lambda known: (len(known), known))!r}?" if alike else None
