"""Property: whatever the policies, limits, keys, retries and durations, a simulation foretells the ledger that planning
and workers leave.
"""

import pytest

from rota.store import Store
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
from tests.support.schedules.random_policies import UNTIL, draw, outage_of
from tests.support.schedules.schedules import noon

CASES = 40
"""Cases of one part; all of a part live in one database, and have the same outage."""


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def differing(store: Store, clock: ManualClock, part: int) -> list[str]:
    start, away = clock.micros(), outage_of(part)
    cases = [draw(seed) for seed in range(part * CASES, (part + 1) * CASES)]
    schedules = {case.name: await make_case(store, case) for case in cases}
    wanted = {case.name: foretold(case, schedules[case.name], start, UNTIL, away) for case in cases}
    got = await live_through(store, clock, cases, UNTIL, away)
    return list(differences(cases, wanted, got).values())


async def differing_from_now(store: Store, clock: ManualClock, part: int) -> list[str]:
    """Simulate at several instants, each time from what the database holds then to the end."""
    start, away = clock.micros(), outage_of(part)
    cases = [draw(seed) for seed in range(part * CASES, (part + 1) * CASES)]
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


@pytest.mark.parametrize("part", with_long_form(range(4), range(4, 250)))
async def test_a_simulation_foretells_the_ledger(sqlite_store: Store, clock: ManualClock, part: int) -> None:
    found = await differing(sqlite_store, clock, part)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("part", with_long_form(range(1), range(1, 25)))
async def test_on_postgresql_too(postgres_store: Store, clock: ManualClock, part: int) -> None:
    found = await differing(postgres_store, clock, part)
    assert not found, "\n".join(found)
