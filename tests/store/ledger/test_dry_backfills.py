"""Property: whatever was planned before, a dry backfill tells what the backfill then does."""

import random

import msgspec
import pytest

from rota.core.ledger.backfill import Backfill, BackfillOrder, Ran
from rota.core.runs.admit import Holder
from rota.store import Store
from rota.store.runs.enqueue import Keys
from tests.support.clock import SECOND, ManualClock
from tests.support.forms import with_long_form
from tests.support.schedules.ledgers import live_through, make_case
from tests.support.schedules.random_policies import RandomCase, draw, outage_of
from tests.support.schedules.schedules import noon

CASES, UNTIL = 30, 60


@pytest.fixture
def clock() -> ManualClock:
    return noon()


def cases_of(part: int) -> list[RandomCase]:
    cases = [draw(seed) for seed in range(part * CASES, (part + 1) * CASES)]
    return [case for case in cases if "overlap" in case.options]  # the others follow their own runs: they have no past


def told(done: Backfill) -> Backfill:
    return msgspec.structs.replace(done, runs=(), dry_run=False)


async def differing(store: Store, clock: ManualClock, part: int) -> tuple[list[str], int]:
    """Return the differences, and how many plan times were held back by keys."""
    start, cases, rng = clock.micros(), cases_of(part), random.Random(f"backfill {part}")
    for case in cases:
        await make_case(store, case)
    await live_through(store, clock, cases, UNTIL, outage_of(part))
    clock.advance(rng.randint(0, 7) * SECOND)
    found, held = [], 0
    for case in cases:
        if rng.random() < 0.2:
            await store.schedules.pause(case.name, None, "test", None)
        order = BackfillOrder(
            start, clock.micros() - rng.randint(0, 9_000_000), Ran(rng.choice([*Ran])), rng.randint(1, 3)
        )
        dry = await store.ledger.backfill(case.name, msgspec.structs.replace(order, dry_run=True))
        again = await store.ledger.backfill(case.name, msgspec.structs.replace(order, dry_run=True))
        done = await store.ledger.backfill(case.name, order)
        held += done.held
        if told(dry) != told(done) or dry != again or dry.runs or len(done.runs) != done.count:
            found.append(f"{case.name} {order}\n  told {dry}\n  done {done}")
    return found, held


@pytest.mark.parametrize("part", with_long_form(range(2), range(2, 60)))
async def test_a_dry_run_tells_what_a_backfill_does(store: Store, clock: ManualClock, part: int) -> None:
    found, held = await differing(store, clock, part)
    assert not found, "\n".join(found)
    assert held, "keys had no say"


async def test_keys_that_are_not_read_are_noticed(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nobody(_: Keys, *, locked: bool = True) -> tuple[int, dict[str, Holder]]:
        return (0, {}) if not locked else await read(_)

    read = Keys.read
    monkeypatch.setattr(Keys, "read", nobody)
    found, _ = await differing(sqlite_store, clock, 0)
    assert found
