"""What an operation reads does not grow with what waits: by counts, which are the same on every machine.

The same operations in two databases, in one of which hundreds of thousands of runs wait, with whatever PostgreSQL's
planner may know of them: everything, what was true before most of them came, nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from rota.core.jobs.job import Retention
from rota.core.runs.claim import AT_ONCE, PLAIN, ClaimRequest, LimitedRequest, QueueRequest, RestrictedRequest
from rota.core.states import Outcome
from rota.core.workers.requirements import MetRequirements
from rota.store import Store
from rota.store.databases.pinned_plans import PINNED
from rota.store.databases.postgres import postgres
from tests.conftest import migrated
from tests.support.databases import deep_queues
from tests.support.databases.deep_queues import Reading
from tests.support.databases.postgres import PostgresCluster, all_binaries
from tests.support.runs.runs import LEASE_MICROS, WORKER, make, report_of
from tests.support.schedules.schedules import make_schedule

pytestmark = pytest.mark.postgres

VERSIONS = all_binaries()
SHALLOW, DEEP, DEEPEST = 1_000, 100_000, 300_000  # plain runs: many on every version, and very many on the newest
FEWER, MORE = 2_500, 8_000  # of every other kind
SETTINGS = {
    "autovacuum": "off",  # it would bring new statistics when it likes
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
KNOWN = {"work": 1, "later": 1, "limited": 1, "needy": 1, "many": 1, "part": 1}
FEW = 20

Operation = Callable[[Store], Awaitable[object]]


async def claim(store: Store) -> None:
    asks = (QueueRequest("default", FEW), QueueRequest("nobody's", FEW))
    assert len(await store.claim(ClaimRequest(WORKER.id, asks, KNOWN, LEASE_MICROS, PLAIN))) == FEW


async def claim_parts(store: Store) -> None:
    request = ClaimRequest(WORKER.id, (QueueRequest("parts", FEW),), KNOWN, LEASE_MICROS, AT_ONCE)
    assert len(await store.claim(request)) == FEW


async def report(store: Store) -> None:
    """Half of them well, half not: these are tried again."""
    claims = await store.claim(ClaimRequest(WORKER.id, (QueueRequest("default", FEW),), KNOWN, LEASE_MICROS, PLAIN))
    await store.extend(WORKER, [(one.run_id, one.fence) for one in claims], LEASE_MICROS)
    told = [report_of(one, Outcome.SUCCEEDED) for one in claims[::2]]
    told += [report_of(one, Outcome.FAILED, retry_in=1_000_000) for one in claims[1::2]]
    await store.report(told)


async def claim_limited(store: Store) -> None:
    request = LimitedRequest(WORKER.id, "worker", ("default",), KNOWN, LEASE_MICROS, FEW, PLAIN)
    claims = (await store.claim_limited(request)).claims
    assert len(claims) == FEW
    await store.report([report_of(one, Outcome.SUCCEEDED) for one in claims])


async def claim_restricted(store: Store) -> None:
    met = MetRequirements((deep_queues.NEED,))
    request = RestrictedRequest(WORKER.id, "worker", ("default",), KNOWN, LEASE_MICROS, FEW, PLAIN, met)
    assert len((await store.claim_restricted(request)).claims) == FEW


async def claim_replicas(store: Store) -> None:
    met = MetRequirements((), ("@worker",), ("*",))
    request = RestrictedRequest(WORKER.id, "worker", ("default",), KNOWN, LEASE_MICROS, FEW, PLAIN, met)
    assert len((await store.claim_restricted(request)).claims) == FEW


async def promote(store: Store) -> None:
    assert (await store.promote(FEW)).count == 3 * FEW


async def reap(store: Store) -> None:
    await store.reap(FEW)


async def tidy(store: Store) -> None:
    await store.tidy()


async def conduct(store: Store) -> None:
    await store.conducts.step(absent=True)


async def deliver(store: Store) -> None:
    assert (await store.signals.deliver(FEW)).signals == FEW


async def plan(store: Store) -> None:
    assert (await store.planning.look((), followers=False)).next_at is not None
    assert (await store.planning.plan(FEW, {})).schedules == FEW


async def enqueue(store: Store) -> None:
    await store.enqueue([make() for _ in range(FEW)])
    await store.enqueue([make()])


async def prune(store: Store) -> None:
    await store.prune(lambda _: Retention(), thorough=False)


OF_PLAIN_RUNS: tuple[Operation, ...] = (claim, report, enqueue)
ALL: tuple[Operation, ...] = (
    *OF_PLAIN_RUNS, claim_parts, claim_limited, claim_restricted, claim_replicas, promote, reap, tidy, conduct, deliver,
    plan, prune,
)  # fmt: skip


@dataclass(frozen=True)
class Compared:
    name: str
    knows: str
    shallow: Reading
    deep: Reading

    @property
    def grows(self) -> bool:
        """By more than the indexes are deeper."""
        rows = self.deep.total > 1.3 * self.shallow.total + 10 * FEW
        return rows or self.deep.pages > 2 * self.shallow.pages + 10 * FEW

    def __str__(self) -> str:
        return f"{self.name}, planner knows {self.knows}: {self.shallow}; deep: {self.deep}"


class Two:
    """A database in which few runs wait, and one in which many do."""

    def __init__(self, cluster: PostgresCluster, deep: int) -> None:
        self._plain = deep
        template = cluster.create_database()
        asyncio.run(migrated(template))
        asyncio.run(deep_queues.execute(template, *deep_queues.PREPARE))
        asyncio.run(_with_schedule(template))
        asyncio.run(deep_queues.execute(template, "delete from rota_epoch"))  # else each would be a copy, and rest
        self.shallow, self.deep = cluster.create_database(template), cluster.create_database(template)

    async def execute(self, *statements: str) -> None:
        for url in (self.shallow, self.deep):
            await deep_queues.execute(url, *statements)

    async def fill_plain(self) -> None:
        for url, count in ((self.shallow, SHALLOW), (self.deep, self._plain)):
            await deep_queues.fill(url, [deep_queues.PLAIN], count)

    async def fill_others(self) -> None:
        for url, count in ((self.shallow, FEWER), (self.deep, MORE)):
            await deep_queues.fill(url, deep_queues.OTHERS, count, deep_queues.BESIDES)

    async def compare(self, knows: str, *operations: Operation) -> list[Compared]:
        """Each is done twice: what an earlier one left dead is gone through once, by whoever comes next."""
        found = [await _readings(url, operations) for url in (self.shallow, self.deep)]
        return [
            Compared(operation.__name__, knows, few, many)
            for operation, few, many in zip(operations, *found, strict=True)
        ]

    async def plans_of(self, operation: Operation, patch: pytest.MonkeyPatch) -> str:
        async with deep_queues.opened(self.deep) as store:
            with deep_queues.explaining(patch) as plans:
                await operation(store)
        return "\n\n".join(plans)


async def _readings(url: str, operations: Sequence[Operation]) -> list[Reading]:
    found = []
    async with deep_queues.opened(url) as store:
        for operation in operations:
            await operation(store)
            found.append(await deep_queues.reading(store, partial(operation, store)))
    return found


async def _with_schedule(url: str) -> None:
    async with deep_queues.opened(url) as store:
        await make_schedule(store)


@contextmanager
def two_databases(version: int, deep: int) -> Iterator[Two]:
    with PostgresCluster(settings=SETTINGS, binaries=VERSIONS[version]) as cluster:
        yield Two(cluster, deep)


@pytest.mark.skipif(not VERSIONS, reason="no binaries of PostgreSQL")
@pytest.mark.parametrize("version", sorted(VERSIONS, reverse=True))
def test_no_operation_reads_more_because_more_runs_wait(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with two_databases(version, DEEPEST if version == max(VERSIONS) else DEEP) as two:

        async def compared() -> list[Compared]:
            await two.fill_plain()
            await two.execute("vacuum analyze")
            found = await two.compare("of one job", *OF_PLAIN_RUNS)
            await two.fill_others()
            found += await two.compare("nothing of what came since", *ALL)
            await two.execute(deep_queues.FORGET)
            found += await two.compare("nothing", *ALL)
            await two.execute("vacuum analyze")
            return found + await two.compare("everything", *ALL)

        async def explained(growing: list[Compared]) -> str:
            names = {one.name for one in growing}
            plans = [await two.plans_of(operation, monkeypatch) for operation in ALL if operation.__name__ in names]
            return "\n\n".join([*map(str, growing), *plans])

        found = asyncio.run(compared())
        growing = [one for one in found if one.grows]
        if growing:
            pytest.fail(asyncio.run(explained(growing)))


@pytest.mark.skipif(not VERSIONS, reason="no binaries of PostgreSQL")
def test_it_is_noticed_if_plans_are_not_pinned_or_an_index_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    with two_databases(max(VERSIONS), DEEP) as two:

        async def compared() -> list[Compared]:
            await two.fill_plain()
            await two.execute("vacuum analyze")
            found = await two.compare("pinned", claim)
            with monkeypatch.context() as patch:
                patch.setattr(postgres, "PINNED", PINNED.replace("set local enable_bitmapscan = off; ", ""))
                found += await two.compare("not pinned", claim)
            await two.execute("drop index rota_ready_claim")
            return found + await two.compare("without its index", claim)

        pinned, unpinned, unindexed = asyncio.run(compared())
    assert not pinned.grows, pinned
    assert unpinned.grows, unpinned
    assert unindexed.grows, unindexed
