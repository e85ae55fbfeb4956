"""Property: whatever the policies, limits, keys, retries and durations, a simulation foretells the ledger that planning
and workers leave.
"""

import pytest

from rota.store import Store
from tests.support.clock import ManualClock
from tests.support.forms import with_long_form
from tests.support.schedules.ledgers import differences, foretold, live_through, make_case
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


@pytest.mark.parametrize("part", with_long_form(range(4), range(4, 250)))
async def test_a_simulation_foretells_the_ledger(sqlite_store: Store, clock: ManualClock, part: int) -> None:
    found = await differing(sqlite_store, clock, part)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("part", with_long_form(range(1), range(1, 25)))
async def test_on_postgresql_too(postgres_store: Store, clock: ManualClock, part: int) -> None:
    found = await differing(postgres_store, clock, part)
    assert not found, "\n".join(found)
