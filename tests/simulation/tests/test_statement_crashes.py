"""Whoever dies inside a transaction, before or after any of its statements, leaves the database exactly as it was."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rota.core.calendar.triggers import after, every
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.ledger.backfill import BackfillOrder, Ran
from rota.core.limits.limits import Limit
from rota.core.runs.claim import Claim
from rota.core.runs.run import NewRun
from rota.core.schedules.revisions import Change
from rota.core.states import Outcome
from rota.core.workers.worker import WorkerSettings, WorkerState
from rota.store import Store, open_database
from rota.store.monitoring import count_runs
from rota.store.runs import prune
from rota.values.scope import Scope
from tests.simulation.disk.statement_crashes import MOMENTS, StatementDeaths, dead_are_buried, dump
from tests.simulation.disk.workload import Ids
from tests.support.clock import MINUTE, SECOND
from tests.support.databases.postgres import PostgresServer
from tests.support.databases.transaction_crashes import Died
from tests.support.runs.runs import LEASE, LEASE_MICROS, WORK, WORKER, claim, claim_limited, make, report_of
from tests.support.schedules.schedules import definition_of, make_schedule, noon, plan

LIMITED = JobDefinition(name="limited", limits=(Limit(max=1, by=("key",)),))
FRAGILE = JobDefinition(name="fragile", on_lost="fail")
KNOWN = {"work": 1, "limited": 1, "fragile": 1}
TENANTS = (Scope("tenant", "a"), Scope("tenant", "b"))
REPLACING: dict[str, Any] = {"key": "k", "unique": {"on_conflict": "replace"}}
FEWEST = 3
"""Statements: of fewer there is nothing to be seen."""


class Site:
    """A database in which something is about to be done."""

    held: list[Claim]

    def __init__(self, url: str) -> None:
        self.clock = noon()
        self.ids = Ids(self.clock)
        self.store = Store(open_database(url, self.clock), self.ids)

    def run(self, job: JobDefinition = WORK, **options: Any) -> NewRun:
        return make(job, id=self.ids(), **options)

    async def put(self, job: JobDefinition = WORK, **options: Any) -> str:
        return (await self.store.enqueue([self.run(job, **options)]))[0].id

    async def schedule(self, name: str, trigger: Any = None, **options: Any) -> None:
        await make_schedule(self.store, name, trigger, **options)

    async def claim(self) -> None:
        self.held = [*await claim(self.store, known=KNOWN), *await claim_limited(self.store, known=KNOWN)]


Sites = Callable[[], Awaitable[Site]]
Act = Callable[[Site], Awaitable[object]]


@pytest.fixture(params=["sqlite", "postgres"])
def template(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_template"))


@pytest.fixture
async def sites(template: str, postgres_cluster: PostgresServer, tmp_path: Path) -> AsyncIterator[Sites]:
    """Databases of one kind, each fresh."""
    opened: list[tuple[Site, str]] = []
    server = postgres_cluster if template.startswith("postgres") else None

    async def fresh() -> Site:
        if server:
            url = server.create_database(template)
        else:
            url = f"sqlite:///{shutil.copy(template, tmp_path / f'{len(opened)}.db')}"
        site = Site(url)
        opened.append((site, url))
        await site.store.save_jobs([WORK, LIMITED, FRAGILE])
        return site

    yield fresh
    for site, url in opened:
        await site.store.close()
        if server:
            server.drop_database(url)


async def waiting_with_key(site: Site) -> None:
    await site.put(delay="1m", **REPLACING)


async def replace(site: Site) -> object:
    return await site.store.enqueue([site.run(payload={"n": 2}, priority=3, **REPLACING), site.run()])


async def enqueue_keyed(site: Site) -> object:
    limited = [site.run(LIMITED, payload={"key": "a"}) for _ in range(2)]
    return await site.store.enqueue([site.run(idempotency_key="i"), site.run(key="other"), *limited])


async def some_held(site: Site) -> None:
    """Runs of each kind in a worker's hands, another that waits for one of them, and the time of a schedule."""
    for job in (WORK, WORK, WORK, FRAGILE):
        await site.put(job)
    for _ in range(2):
        await site.put(LIMITED, payload={"key": "a"})
    await site.schedule("s", overlap="queue_one")
    site.clock.advance(MINUTE)
    await plan(site.store)
    await site.claim()
    site.clock.advance(MINUTE)
    await site.store.extend(WORKER, [(one.run_id, one.fence) for one in site.held], LEASE_MICROS)
    await plan(site.store)


async def some_waiting(site: Site) -> None:
    for key in ("a", "a", "b"):
        await site.put(LIMITED, payload={"key": key})


async def extend(site: Site) -> object:
    held = [(one.run_id, one.fence + number % 2) for number, one in enumerate(site.held)]  # half of them are lost
    return await site.store.extend(WORKER, held, 2 * LEASE_MICROS)


async def ask_of_workers(site: Site) -> object:
    return await site.store.workers.ask("worker", "me", state=WorkerState.DRAINING, settings=WorkerSettings(slots=3))


async def report(site: Site) -> object:
    outcomes = [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.FAILED, Outcome.SNOOZED, Outcome.FAILED, Outcome.CANCELLED]
    waits = [None, 5_000_000, None, 5_000_000, 5_000_000, None]
    facts: list[dict[str, Any]] = [{} if wait is None else {"retry_in": wait} for wait in waits]
    told = zip(site.held, outcomes, facts, strict=True)
    return await site.store.report([report_of(held, outcome, **fact) for held, outcome, fact in told])


async def some_expired(site: Site) -> None:
    await some_held(site)
    await site.store.cancel(site.held[0].run_id, "no longer wanted", "me")
    site.clock.advance(LEASE + SECOND)


async def due_schedules(site: Site) -> None:
    """Whose planning uses every statement that planning has."""
    wide: dict[str, Any] = {"catch_up": {"mode": "all", "keep": 3, "window": "5m"}}
    await site.schedule("plain", overlap="allow")
    await site.schedule("narrow", every("20s"), catch_up={"mode": "latest", "window": "1m"})
    await site.schedule("all", every("30s"), **wide, overlap="allow")
    await site.schedule("failing", failure={"mode": "retry", "max_attempts": 3})
    await site.schedule("queued", overlap="queue_one")
    await site.schedule("cancelling", overlap="cancel_previous")
    await site.schedule("scoped", scopes="tenants", overlap="allow")
    await site.schedule("limited", overlap="allow", max_concurrency=2, when_full="skip")
    await site.schedule("following", after("10s"))
    site.clock.advance(MINUTE)
    await plan(site.store, tenants=TENANTS)
    await site.claim()
    await site.store.report([report_of(site.held[0], Outcome.FAILED), report_of(site.held[1], Outcome.SUCCEEDED)])
    site.clock.advance(10 * MINUTE)


async def a_schedule(site: Site) -> None:
    """Most of its plan times were missed, some are due."""
    await site.schedule("s", catch_up={"mode": "latest", "window": "2m"}, overlap="queue_all")
    for passed in (1, 10, 1):
        site.clock.advance(passed * MINUTE)
        await plan(site.store)
    site.clock.advance(2 * MINUTE)


async def a_paused_schedule(site: Site) -> None:
    await a_schedule(site)
    await site.store.schedules.pause("s", "a holiday", "me", None)
    site.clock.advance(3 * MINUTE)


async def backfill(site: Site) -> object:
    now = site.clock.micros()
    order = BackfillOrder(now - 15 * 60_000_000, now, ran=Ran.ALL, concurrency=2, actor="me")
    return await site.store.ledger.backfill("s", order)


async def update(site: Site) -> object:
    definition = await definition_of(site.store, every("90s"), overlap="allow", max_concurrency=1)
    return await site.store.schedules.update("s", definition, Change(note="edited"))


async def much_to_prune(site: Site) -> None:
    """Of a schedule, whose second run was skipped because of the first, and others."""
    await site.schedule("s")
    for _ in range(3):
        await site.put()
    site.clock.advance(MINUTE)
    await plan(site.store)
    await site.claim()
    site.clock.advance(MINUTE)
    await plan(site.store)
    await site.store.report([report_of(one, Outcome.SUCCEEDED) for one in site.held])
    site.clock.advance(timedelta(hours=2))


async def drop_runs(site: Site) -> object:
    retention = Retention(keep=1, keep_for=timedelta(seconds=1))
    old = await site.store.database.read(lambda tx: prune.prunable(tx, "work", retention))
    return await site.store.database.transact(prune.drop_runs(old, retention))


async def cancel(site: Site) -> object:
    return await site.store.cancel(site.held[0].run_id, "no longer wanted", "me")


ACTS: dict[str, tuple[Callable[[Site], Awaitable[None]], Act]] = {
    "enqueue, replacing": (waiting_with_key, replace),
    "enqueue, keyed and limited": (waiting_with_key, enqueue_keyed),
    "claim limited": (some_waiting, lambda site: claim_limited(site.store, known=KNOWN)),
    "extend": (some_held, extend),
    "ask of workers": (some_held, ask_of_workers),
    "report": (some_held, report),
    "reap": (some_expired, lambda site: site.store.reap(100)),
    "cancel": (some_held, cancel),
    "plan": (due_schedules, lambda site: site.store.planning.plan(100, {"tenants": TENANTS})),
    "trigger": (a_schedule, lambda site: site.store.schedules.trigger("s", None, force=True)),
    "update": (a_schedule, update),
    "pause": (a_schedule, lambda site: site.store.schedules.pause("s", "a holiday", "me", None)),
    "resume, catching up": (a_paused_schedule, lambda site: site.store.schedules.resume("s", "all", "me")),
    "delete": (a_schedule, lambda site: site.store.schedules.delete("s", "me")),
    "backfill": (a_schedule, backfill),
    "prune": (much_to_prune, drop_runs),
    "count": (much_to_prune, lambda site: site.store.database.transact(count_runs.count("work"))),
}


async def check_deaths(sites: Sites, prepare: Callable[[Site], Awaitable[None]], act: Act) -> int:
    """The number of statements. What one process did after many had died is what another did undisturbed."""
    undisturbed, site = await sites(), await sites()
    for one in (undisturbed, site):
        await prepare(one)
    before, given = await dump(site.store), site.ids.given
    assert before == await dump(undisturbed.store), "both begin alike"
    counted, deaths = StatementDeaths(undisturbed.store), StatementDeaths(site.store)
    answer = await act(undisturbed)
    expected = await dump(undisturbed.store)
    assert expected != before, "it does something"
    for number, moment in product(range(counted.statements), MOMENTS):
        site.ids.given = given
        deaths.at(number, moment)
        with pytest.raises(Died):
            await act(site)
        await dead_are_buried(site.store)
        assert await dump(site.store) == before, f"death {moment} statement {number} left something behind"
    site.ids.given = given
    deaths.never()
    assert await act(site) == answer
    assert await dump(site.store) == expected, "repeated, it does the same as if nothing had happened"
    return counted.statements


@pytest.mark.parametrize("name", ACTS)
async def test_death_at_any_statement_leaves_nothing_behind(sites: Sites, name: str) -> None:
    assert await check_deaths(sites, *ACTS[name]) >= FEWEST


async def test_an_act_of_two_transactions_is_found_out(sites: Sites) -> None:
    """Or the test above could not fail."""

    async def twice(site: Site) -> object:
        await site.store.enqueue([site.run(key="first")])
        return await site.store.enqueue([site.run(key="second")])

    with pytest.raises(AssertionError, match="left something behind"):
        await check_deaths(sites, waiting_with_key, twice)
