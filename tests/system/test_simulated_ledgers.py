"""A smaller set of the property in real time: a simulation foretells the ledger that real processes leave.

Of random cases those are taken in which no moment decides: whose simulated ledger stays the same, by the second, if
planning and every attempt are a little late. `tests/store/planning/test_simulated_ledgers.py` has the others.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import pytest

from rota.core.calendar.triggers import every
from rota.core.planning.assumptions import Attempt
from rota.core.planning.simulate import simulate
from rota.core.planning.tick import ScheduleState
from rota.core.runs.run import RunFilter
from rota.core.schedules.schedule import ScheduleDefinition, define
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.values.instants import instant
from tests.support.jobs.random_jobs import SEEDS, START
from tests.support.schedules.ledgers import (
    SECOND,
    Ledger,
    Line,
    Scripted,
    assuming,
    differences,
    ledgers,
    lines_of,
    retry_of,
)
from tests.support.schedules.random_policies import STEP, RandomCase, draw
from tests.system.site import Site

APP = "tests.support.jobs.random_jobs:app"
UNTIL = 22
"""Seconds: four plan times. The ledger is read in the middle of the next one."""
CASES = 30
MOST_LATE = 0.6
"""By how much planning and each attempt may be late, in seconds."""
_VARIANTS = 10


class Late(Scripted, frozen=True, kw_only=True):
    """The same behaviour, by attempts that take a little longer."""

    lateness: Callable[[], int]

    def outcome(self, attempt: Attempt) -> tuple[int, bool]:
        lasts, failing = super().outcome(attempt)
        return lasts + self.lateness(), failing


def simulated(case: RandomCase, definition: ScheduleDefinition, start: int, chance: random.Random | None) -> Ledger:
    """Simulate a case that is in time or, by `chance`, a little late at each plan time and at each end."""

    def lateness() -> int:
        return 0 if chance is None else chance.randint(0, int(MOST_LATE * SECOND))

    standing = ScheduleState(case.name, case.name, definition, start, start + STEP * SECOND)
    quotas = {} if case.quota is None else {scope: case.quota.gates(scope) for scope in definition.lanes}
    ticks = range(start + STEP * SECOND, start + (UNTIL + STEP) * SECOND, STEP * SECOND)
    assumed = Late(**msgspec.structs.asdict(assuming(case, start, (0, 0), quotas)), lateness=lateness)
    assumed = msgspec.structs.replace(assumed, outages=tuple((at, at + lateness()) for at in ticks if chance))
    until = start + UNTIL * SECOND + (0 if chance is None else SECOND // 2)
    found = simulate(standing, retry_of(case, definition), start, until, assumed)
    return by_the_second(lines_of(found, start))


def by_the_second(ledger: Iterable[Line]) -> Ledger:
    def floor(at: float | None) -> float | None:
        return None if at is None else float(at // 1)

    lines = (Line(**{**vars(line), "began": floor(line.began), "ended": floor(line.ended)}) for line in ledger)
    return [line for line in lines if line.plan_time <= UNTIL]


def definition_of(case: RandomCase, start: int) -> ScheduleDefinition:
    begin = {"start_at": instant(start + STEP * SECOND)}
    return define(case.job, case.trigger, {**case.options, **begin}, name=case.name, now=start)


def is_steady(case: RandomCase) -> bool:
    if case.trigger != every(f"{STEP}s") or "jitter" in case.options:  # it depends on the id of a schedule
        return False
    definition = definition_of(case, 0)
    on_time = simulated(case, definition, 0, None)
    return all(simulated(case, definition, 0, random.Random(number)) == on_time for number in range(_VARIANTS))


def steady_cases() -> list[RandomCase]:
    drawn = map(draw, range(1_000))
    return [case for case, _ in zip(filter(is_steady, drawn), range(CASES), strict=False)]


_BEGINS = """
select run_id, claimed_at from rota_attempt union all select run_id, claimed_at from rota_lease
union all select id, claimed_at from rota_run where claimed_at is not null
"""


async def ledgers_of(store: Store, start: int) -> dict[str, Ledger]:
    """Read what became of the plan times of each schedule so far."""

    async def body(tx: Tx) -> Sequence[Row]:
        return await tx.fetch_sql(_BEGINS)

    first: dict[str, float] = {}
    for id, at in await store.database.read(body):
        first[str(id)] = min((at - start) / SECOND, first.get(str(id), UNTIL + 1.0))
    return {name: by_the_second(ledger) for name, ledger in (await ledgers(store, first, start)).items()}


async def live(site: Site, folder: Path, cases: Sequence[RandomCase]) -> tuple[dict[str, Ledger], float]:
    """Let two workers do what the cases say; return the ledgers, and by how much the latest begin of a plain job was
    late, in seconds.
    """
    begin = folder / "start"
    seeds = " ".join(case.name.removeprefix("case-") for case in cases)
    environment = site.environment(**{SEEDS: seeds, START: str(begin)})
    for name in ("a", "b"):
        flags = ("--name", name, "--concurrency", "100")
        site.processes.rota("worker", *flags, APP, environment=environment).until_said(f" runs {APP}")
    store = site.client.store
    start = (await store.now() // (STEP * SECOND) + 1) * STEP * SECOND
    begin.write_text(str(start))
    await site.client.schedules.create("control", "control", every("1s"), overlap="allow")
    for case in cases:
        if case.quota is not None:
            await store.quotas.update(case.options["scopes"][0][0], "", case.quota, "test")
        await store.schedules.create(case.name, definition_of(case, start), "test")
    late = await store.now() - start
    assert late < STEP * SECOND, "they were made before the first plan time"
    await asyncio.sleep(UNTIL + 0.5 - late / SECOND)
    found = await ledgers_of(store, start)
    late = await store.now() - (start + UNTIL * SECOND + SECOND // 2)
    runs = [run for run in await site.client.list(RunFilter(job="control"), limit=100) if run.started_at]
    begins = [(run.started_at - run.plan_time).total_seconds() for run in runs if run.started_at and run.plan_time]
    assert begins
    return found, max(late / SECOND, *begins)


@pytest.mark.slow
async def test_a_simulation_foretells_the_ledger_of_real_processes(site: Site, tmp_path: Path) -> None:
    cases = steady_cases()
    assert len(cases) == CASES
    left, late = await live(site, tmp_path, cases)
    wanted = {case.name: simulated(case, definition_of(case, 0), 0, None) for case in cases}
    found = differences(cases, wanted, left)
    if found and late > MOST_LATE:
        pytest.skip(f"the machine is busy: a run began {late:.1f} s late")
    assert not found, "\n".join(found.values())
    assert sum(line.began is not None for ledger in left.values() for line in ledger) > 2 * CASES
