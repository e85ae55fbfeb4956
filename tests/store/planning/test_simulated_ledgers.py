"""Property: whatever the policies, limits, keys, retries and durations, a simulation foretells the ledger that planning
and workers leave.
"""

from collections.abc import Collection
from functools import partial
from typing import Any

import pytest

from rota.core.limits.turns import in_turn
from rota.core.planning.simulated_limits import SimulatedLimits
from rota.core.runs.admit import Facts, Holder
from rota.store import Store
from rota.store.databases.database import Tx
from rota.store.limits import admit, rates, slots
from rota.store.limits.rates import Counted
from rota.store.runs import cancel
from rota.store.runs.enqueue import Keys
from tests.support.clock import ManualClock
from tests.support.forms import with_long_form
from tests.support.schedules.ledgers import (
    Ledger,
    Pause,
    differences,
    foretold,
    foretold_from_now,
    live_through,
    make_case,
)
from tests.support.schedules.random_policies import UNTIL, RandomCase, draw, outage_of
from tests.support.schedules.schedules import noon

CASES = 40
"""Cases of one part; all of a part live in one database, and have the same outage."""
DIFFERED = {
    249: "a job's limit is blocked by the quota of one of its scopes",
    339: "runs of a schedule wait under its own limit and, in parallel, under the rate of the job",
    1669: "a retry waits under the job's limit, and a younger run under the quota",
    6140: "a replaced run leaves a limit that another run of the same plan time asks",
    7561: "a run that waited for another one is superseded, and the next one has to wait in its stead",
    8268: "a replaced run leaves two limits",
}
"""Seeds whose ledgers differed once, and what is special about them."""
DIFFERED_FROM_NOW = {861: "the line of a scope that has no live run"}
"""The same, of simulations that begin in the middle."""


@pytest.fixture
def clock() -> ManualClock:
    return noon()


def cases_of(part: int) -> list[RandomCase]:
    return [draw(seed) for seed in range(part * CASES, (part + 1) * CASES)]


async def differing(
    store: Store, clock: ManualClock, part: int, cases: Collection[RandomCase] | None = None
) -> list[str]:
    start, away = clock.micros(), outage_of(part)
    cases = cases_of(part) if cases is None else cases
    schedules = {case.name: await make_case(store, case) for case in cases}
    wanted = {case.name: foretold(case, schedules[case.name], start, UNTIL, away) for case in cases}
    got = await live_through(store, clock, cases, UNTIL, away)
    return list(differences(cases, wanted, got).values())


async def differing_from_now(
    store: Store, clock: ManualClock, part: int, cases: Collection[RandomCase] | None = None
) -> list[str]:
    """Simulate at several instants, each time from what the database holds then to the end."""
    start, away = clock.micros(), outage_of(part)
    cases = cases_of(part) if cases is None else cases
    schedules = {case.name: await make_case(store, case) for case in cases}
    foreseen: dict[int, dict[str, tuple[float, Ledger]]] = {}

    def look(second: int) -> Pause:
        async def tell() -> None:
            foreseen[second] = {
                case.name: await foretold_from_now(store, case, schedules[case.name].definition, start, UNTIL, away)
                for case in cases
            }

        return tell

    got = await live_through(store, clock, cases, UNTIL, away, {second: look(second) for second in (7, 24, 51)})
    found: list[str] = []
    for told in foreseen.values():
        rest = {
            name: [line for line in got.get(name, []) if line.plan_time > cursor] for name, (cursor, _) in told.items()
        }
        found += differences(cases, {name: lines for name, (_, lines) in told.items()}, rest).values()
    return found


@pytest.mark.parametrize("part", with_long_form(range(2), range(2, 250)))
async def test_a_simulation_goes_on_from_what_is_there(sqlite_store: Store, clock: ManualClock, part: int) -> None:
    found = await differing_from_now(sqlite_store, clock, part)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", DIFFERED)
async def test_a_case_that_differed_once(store: Store, clock: ManualClock, seed: int) -> None:
    found = await differing(store, clock, seed // CASES, [draw(seed)])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", DIFFERED_FROM_NOW)
async def test_a_case_that_differed_from_the_middle_on(store: Store, clock: ManualClock, seed: int) -> None:
    found = await differing_from_now(store, clock, seed // CASES, [draw(seed)])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("part", with_long_form(range(4), range(4, 250)))
async def test_a_simulation_foretells_the_ledger(sqlite_store: Store, clock: ManualClock, part: int) -> None:
    found = await differing(sqlite_store, clock, part)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("part", with_long_form(range(1), range(1, 25)))
async def test_on_postgresql_too(postgres_store: Store, clock: ManualClock, part: int) -> None:
    found = await differing(postgres_store, clock, part)
    assert not found, "\n".join(found)


async def read_without(field: str, read: Any, tx: Tx, *more: Any) -> Facts:
    facts: Facts = await read(tx, *more)
    setattr(facts, field, type(getattr(facts, field))())
    return facts


async def nothing(*_: object) -> None:
    """Leave out what was to be done."""


async def nobody(_: Keys) -> tuple[int, dict[str, Holder]]:
    return 0, {}


async def no_keys(*_: object) -> list[tuple[str]]:
    return []


async def no_counts(*_: object) -> dict[str, Counted]:
    return {}


FAULTS: dict[str, tuple[object, str, object]] = {
    "counts-are-not-read": (admit, "read", partial(read_without, "counts", admit.read)),
    "places-are-not-read": (admit, "read", partial(read_without, "places", admit.read)),
    "the-oldest-are-not-read": (admit, "read", partial(read_without, "oldest", admit.read)),
    "holders-of-keys-are-not-read": (Keys, "read", nobody),
    "keys-are-not-written": (Keys, "settle", nothing),
    "nobody-gives-way-to-a-limit": (admit, "give_way", nothing),
    "nobody-is-superseded": (cancel, "supersede", nothing),
    "who-may-be-replaced-is-not-read": (Keys, "replaceable", lambda *_: set()),
    "a-replaced-run-counts-on": (Facts, "replace", lambda *_: None),
    "turns-are-taken-backwards": (slots, "in_turn", lambda heads: in_turn(heads)[::-1]),
    "a-freed-slot-opens-no-limit": (slots, "open_limits", nothing),
    "nobody-is-unblocked": (rates, "unblock", no_keys),
    "begins-are-not-counted": (rates, "count", no_counts),
    "a-simulated-key-is-not-taken": (SimulatedLimits, "take_keys", lambda *_: None),
    "a-simulated-run-that-stops-counts-on": (SimulatedLimits, "stop", lambda *_: None),
}
"""Faults in what is read, done or simulated. Admission itself is one function: the property compares what feeds it."""
PARTS = {
    "a-simulated-run-that-stops-counts-on": 7,
    "who-may-be-replaced-is-not-read": 153,
    "a-replaced-run-counts-on": 153,
}
"""Parts that show a fault; others show in part 21."""


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_seen(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    place, name, instead = FAULTS[fault]
    monkeypatch.setattr(place, name, instead)
    assert await differing(sqlite_store, clock, PARTS.get(fault, 21))
