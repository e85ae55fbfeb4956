"""Zones: known by name only, and cut where their offset changes."""

import random
from datetime import UTC, datetime
from importlib import resources
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from rota.core.calendar.zones import DAY, LAST_SECOND, TZDATA_VERSION, Transition, zone, zone_names
from rota.errors import BadTrigger

HOUR = 3_600


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def offset_of(info: ZoneInfo, at: int) -> int:
    shift = datetime.fromtimestamp(at, info).utcoffset()
    assert shift is not None
    return int(shift.total_seconds())


def plain(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data)


@pytest.mark.parametrize(
    ("name", "year", "transitions"),
    [
        ("UTC", 2026, []),
        ("Asia/Taipei", 2026, []),
        ("Asia/Taipei", 1974, [("1974-03-31T16:00", 8, 9), ("1974-09-30T15:00", 9, 8)]),
        ("Europe/Berlin", 2026, [("2026-03-29T01:00", 1, 2), ("2026-10-25T01:00", 2, 1)]),
        ("Europe/Berlin", 2399, [("2399-03-28T01:00", 1, 2), ("2399-10-31T01:00", 2, 1)]),
        ("Australia/Lord_Howe", 2026, [("2026-04-04T15:00", 11, 10.5), ("2026-10-03T15:30", 10.5, 11)]),
        ("Pacific/Apia", 2011, [("2011-04-02T14:00", -10, -11),
         ("2011-09-24T14:00", -11, -10), ("2011-12-30T10:00", -10, 14)]),
        ("Asia/Kathmandu", 1985, [("1985-12-31T18:30", 5.5, 5.75)]),
        ("America/Recife", 2000, [("2000-02-27T02:00", -2, -3),
         ("2000-10-08T03:00", -3, -2), ("2000-10-15T02:00", -2, -3)]),
    ],
)  # fmt: skip
def test_transitions_of_a_year(name: str, year: int, transitions: list[tuple[str, float, float]]) -> None:
    wanted = [Transition(seconds(at), int(before * HOUR), int(after * HOUR)) for at, before, after in transitions]
    assert zone(name).transitions(year) == wanted
    assert zone(name).transitions(year) == wanted  # and when it is known already


@pytest.mark.parametrize("year", [1969, 2400, -1, 10**9])
def test_years_that_are_never_planned_have_none(year: int) -> None:
    assert zone("Europe/Berlin").transitions(year) == []


def changes_by_small_steps(info: ZoneInfo, first: int, last: int) -> list[int]:
    """Return the quarter hours after which the offset differs: a finer probe, and no bisection."""
    offsets = [(at, offset_of(info, at)) for at in range(first, last, 900)]
    return [at for (_, before), (at, after) in pairwise(offsets) if before != after]


@pytest.mark.parametrize(
    "name", ["America/Boa_Vista", "Asia/Gaza", "Africa/Cairo", "Africa/Monrovia", "Antarctica/Troll"]
)
def test_a_finer_probe_finds_the_same(name: str) -> None:
    draw = random.Random(name)
    years = {1972, 2000, 2014, 2040, draw.randint(1970, 2037), draw.randint(2038, 2399)}
    for year in years:
        found = [change.at for change in zone(name).transitions(year)]
        walked = changes_by_small_steps(
            plain(name), seconds(f"{year:04}-01-01") - 900, seconds(f"{year:04}-12-31") + DAY
        )
        assert [-(-at // 900) * 900 for at in found] == walked


def test_all_zones_from_1970_to_2037_have_the_offsets_of_their_data() -> None:
    """Compare at random instants of every zone, and around every transition."""
    draw = random.Random(1970)
    for name in sorted(zone_names()):
        info, found = plain(name), zone(name)
        instants = [draw.randrange(seconds("2037-12-31")) for _ in range(12)]
        year = draw.randint(1970, 2037)
        instants += [change.at + near for change in found.transitions(year) for near in (-1, 0)]
        for at in instants:
            piece = found.piece(at)
            assert piece.start <= at < piece.end
            assert found.offset(at) == offset_of(info, at), (name, at)
            assert offset_of(info, piece.start) == offset_of(info, piece.end - 1) == piece.offset
            assert piece.before == offset_of(info, piece.start - 1)


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Pacific/Apia", "Africa/Casablanca"])
def test_pieces_leave_no_instant_out(name: str) -> None:
    at, pieces = 0, 0
    while at <= seconds("2090-01-01"):
        piece = zone(name).piece(at)
        assert piece.start == at < piece.end
        assert piece.start + piece.offset <= piece.fresh <= piece.end + piece.offset
        assert piece.start + piece.offset <= piece.repeats <= piece.end + piece.offset
        at, pieces = piece.end, pieces + 1
    assert pieces == 1 if name == "UTC" else pieces >= 120


def test_wall_times_of_a_fold_are_known_on_both_sides() -> None:
    change = seconds("2026-10-25T01:00")
    before, after = zone("Europe/Berlin").piece(change - 1), zone("Europe/Berlin").piece(change)
    assert before.repeats == seconds("2026-10-25T02:00")
    assert after.fresh == seconds("2026-10-25T03:00")


@pytest.mark.parametrize("at", [-1, -(10**12), LAST_SECOND + 1, 10**15])
@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin"])
def test_instants_out_of_range_have_the_nearest_piece(name: str, at: int) -> None:
    piece = zone(name).piece(at)
    assert piece.start == 0 if at < 0 else piece.end == LAST_SECOND + 1


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "Europe", "europe/berlin", "Europe/Berlin ", "../../etc/passwd", "Europe/../Europe/Berlin",
        "tzdata.zi", "Europe/Berlin\0",
        "/etc/localtime", "CEST", "\ud800", "x" * 10_000_000, "Europe\\Berlin", "__init__.py", ".",
    ],
)  # fmt: skip
def test_names_that_are_no_zone(name: str) -> None:
    with pytest.raises(BadTrigger) as refused:
        zone(name)
    assert refused.value.field == "timezone"
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("name", [None, 5, b"UTC", ["UTC"]])
def test_values_that_are_no_name(name: object) -> None:
    with pytest.raises(BadTrigger):
        zone(name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Berln", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("Berlin", "did you mean 'Europe/Berlin'?"),
        ("new york", "did you mean 'America/New_York'?"),
        ("utc", "did you mean 'UTC'?"),
        ("CEST", 'as in "Europe/Berlin"'),
        ("PST", 'as in "Europe/Berlin"'),
        ("Nowhere", 'as in "Europe/Berlin"'),
    ],
)
def test_the_nearest_name_is_offered_but_no_other_abbreviation(name: str, hint: str) -> None:
    with pytest.raises(BadTrigger, match="timezone: no time zone is called") as refused:
        zone(name)
    assert refused.value.hint == hint


def test_a_zone_is_read_once() -> None:
    assert zone("Europe/Berlin") is zone("Europe/Berlin")
    assert {"UTC", "US/Eastern", "Asia/Taipei"} <= zone_names()


def test_the_version_is_a_release_of_the_database() -> None:
    year, letter = TZDATA_VERSION[:4], TZDATA_VERSION[4:]
    assert 2020 <= int(year) <= 2100
    assert letter.isalpha()
