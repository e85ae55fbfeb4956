"""Test the one order: one slot begins the highest priority, then the oldest, whatever kinds of runs wait."""

from __future__ import annotations

import random
from typing import NamedTuple

import msgspec
import pytest

from rota.core.limits.limits import limit_of_key
from rota.engine.engine import worker_info
from rota.engine.worker.worker import Worker
from rota.store.databases.database import Tx
from rota.testing import Harness
from tests.support.forms import with_long_form
from tests.support.runs.real_worker import SECOND

NAME = "one-slot"
_WAITING = """
select w.rank, w.run_at, case when n.definition like '%"only_workers":["one-slot"]%' then 0 else 1 end,
    cast(w.run_id as text), w.limit_key, l.served_at
from rota_ready w left join rota_need n on n.id = w.need left join rota_limit l on l.key = w.limit_key
where w.hold in (0, 2, 6) and not exists (select 1 from rota_replica p join rota_replica o on o.parent_id = p.parent_id
    where p.run_id = w.run_id and o.worker = 'one-slot' and p.worker is null)
order by 1, 2, 3, 4
"""


class Waiting(NamedTuple):
    """A run that the worker may have, in claim order; when its limit was served last."""

    rank: int
    run_at: int
    preferred: int
    run_id: str
    key: str | None
    served_at: int | None


KINDS = (
    "plain",
    "limited",
    "rated",
    "keyed",
    "labelled",
    "named",
    "solo",
    "replicas",
    "pipeline",
    "keyed and labelled",
    "replicas under a quota",
    "labelled replicas",
)


class Fleet:
    """Jobs of every kind, and one worker with one slot."""

    def __init__(self, harness: Harness, seed: int, customers: int = 3) -> None:
        self.harness = harness
        self.customers = [f"customer {number}" for number in range(customers)]
        self.chance = random.Random(seed)
        self.begun: list[str] = []

    async def declare(self) -> None:
        app = self.harness.app
        options: dict[str, dict[str, object]] = {
            "limited": {"limit": {"max": 1}},
            "rated": {"limit": {"max": 1000, "per": "1h"}},
            "keyed": {"limit": {"max": 1, "by": "customer"}},
            "labelled": {"labels": ["gpu"]},
            "named": {"only_workers": [NAME]},
            "solo": {"on_lost": "fail"},
            "replicas": {"replicas": 1},
            "replicas under a quota": {"replicas": 2},
            "labelled replicas": {"replicas": 1, "labels": ["gpu"]},
            "keyed and labelled": {"limit": {"max": 2, "by": "customer"}, "labels": ["gpu"]},
        }
        for kind in KINDS:
            if kind != "pipeline":

                async def work(customer: str) -> None: ...

                app.job(work, name=kind, **options.get(kind, {}))  # type: ignore[call-overload]
        app.pipeline("pipeline", [{"step": "only", "job": "plain", "payload": {"customer": "of a part"}}])
        await self.harness.store.save_jobs(app.registry.definitions())
        await self.harness.client.quotas.update("tenant", "narrow", max_concurrency=1)

    async def enqueue(self, kind: str) -> str:
        priority = self.chance.choice((-10, 0, 0, 10))
        customer = self.chance.choice(self.customers)
        scope = ("tenant", "narrow") if "quota" in kind else ("tenant", "wide")
        run = await self.harness.enqueue(kind, {"priority": priority, "scope": scope}, customer=customer)
        self.harness.clock.advance(SECOND / 1000 * self.chance.randint(0, 2))
        while not (await self.harness.conductor.step()):
            pass
        return run.id

    async def suspects(self) -> None:
        """Make a few runs that were lost twice."""
        runs = [await self.enqueue(kind) for kind in ("plain", "plain", "labelled")]
        for name in ("unlucky", "unhappy"):
            await self.harness.worker(name, labels=["gpu"]).claim(20)
            self.harness.clock.advance(self.harness.lease + SECOND)
            await self.harness.reaper.step()
        assert len(runs) == len(await self.waiting())

    async def waiting(self) -> list[Waiting]:
        async def body(tx: Tx) -> list[Waiting]:
            return [Waiting(*row) for row in await tx.fetch_sql(_WAITING)]

        return await self.harness.store.database.read(body)

    def check(self, begun: str, waiting: list[Waiting]) -> None:
        """The first of all; or, in place of a run under a key, one of a key of the same limit whose turn it is."""
        first, run = waiting[0], next(one for one in waiting if one.run_id == begun)
        if run != first:
            assert first.key, (run, first)
            assert run.key, (run, first)
            assert limit_of_key(first.key) == limit_of_key(run.key), (run, first)
            assert run.rank == first.rank, (run, first)
            assert (run.served_at or 0) <= (first.served_at or 0), "it was not its turn"
            assert all(run < one for one in waiting if one.key is None), "it passed a run without a limit"
        self.begun.append(begun)


@pytest.mark.parametrize("seed", with_long_form(range(3), range(3, 60)))
async def test_one_slot_begins_the_first_of_all_kinds(
    either: Harness, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: 0)  # as if they took a second each
    fleet = Fleet(either, seed, 40 if seed % 2 else 3)
    await fleet.declare()
    config = msgspec.structs.replace(either.config, concurrency=1, worker_labels="gpu")
    worker = Worker(either.store, either.app.registry, worker_info(either.app.registry, config, NAME, None), config)
    await fleet.suspects()
    for kind in [*KINDS, *(fleet.chance.choice(KINDS) for _ in range(15))]:
        await fleet.enqueue(kind)
    late = iter(KINDS)
    while waiting := await fleet.waiting():
        claimed = await worker.drain_once()
        assert len(claimed) == 1, (claimed, waiting[0])
        fleet.check(claimed[0], waiting)
        if (kind := next(late, "")) and fleet.chance.random() < 0.7:
            await fleet.enqueue(kind)  # what comes meanwhile takes its place in the order, too
    assert len(fleet.begun) >= len(KINDS) + 15 + 3
    await worker.stop()


async def begin_one(worker: Worker, fleet: Fleet) -> str:
    (begun,) = await worker.drain_once()
    fleet.begun.append(begun)
    return begun


@pytest.mark.parametrize("customers", [3, 21, 60])
async def test_the_oldest_run_under_a_key_is_not_passed_over_however_many_keys_wait(
    either: Harness, customers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key was served last: it comes last in turn, but the others' runs are younger than the plain ones."""
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: 0)
    fleet = Fleet(either, 0, customers)
    await fleet.declare()
    config = msgspec.structs.replace(either.config, concurrency=1)
    worker = Worker(either.store, either.app.registry, worker_info(either.app.registry, config, NAME, None), config)

    async def enqueue(kind: str, customer: str = "") -> str:
        either.clock.advance(SECOND)
        return (await either.enqueue(kind, customer=customer)).id

    last, *others = fleet.customers
    for customer in [*others, last]:
        await enqueue("keyed", customer)
        await begin_one(worker, fleet)
    expected = [await enqueue("keyed", last), *[await enqueue("plain") for _ in range(5)]]
    for customer in others:
        await enqueue("keyed", customer)
    assert [await begin_one(worker, fleet) for _ in expected] == expected
    for _ in others:
        await begin_one(worker, fleet)
    await worker.stop()


@pytest.mark.parametrize("first", ["quiet", "mixed"])
async def test_a_look_at_one_queue_tells_nothing_of_another(
    either: Harness, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer free slots than queues a claim asks one queue; what must begin at once may wait in the other."""
    monkeypatch.setattr("rota.engine.worker.worker.buffer_target", lambda _rate: 1)  # as if they took no time
    monkeypatch.setattr(Worker, "_appetite", lambda _worker, _target: 1)
    queues = sorted(("quiet", "mixed"), key=lambda queue: queue != first)

    async def work() -> None: ...

    either.app.job(name="quiet", queue="quiet")(work)
    either.app.job(name="plain", queue="mixed")(work)
    either.app.job(name="solo", queue="mixed", on_lost="fail")(work)
    await either.store.save_jobs(either.app.registry.definitions())
    jobs = {(await either.enqueue(job, {"priority": 0})).id: job for job in ("quiet", "quiet", "plain", "plain")}
    jobs[(await either.enqueue("solo", {"priority": 10})).id] = "solo"
    config = msgspec.structs.replace(either.config, concurrency=1)
    worker = Worker(either.store, either.app.registry, worker_info(either.app.registry, config, NAME, queues), config)
    begun: list[str] = []
    while len(begun) < len(jobs):
        begun += await worker.drain_once()
    assert [jobs[run] for run in begun if jobs[run] != "quiet"] == ["solo", "plain", "plain"]
    await worker.stop()
