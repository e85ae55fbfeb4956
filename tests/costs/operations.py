"""The operations whose costs are counted, each with what must be there before.

Each is about `COUNT` runs, schedules or limits, unless its name says "one".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from rota import Rota
from rota.client.client import Client
from rota.config import Config
from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.limits.limits import Limit
from rota.core.runs.claim import PLAIN, SUSPECTS, Claim, LimitedRequest, OrderedRequest, QueueRequest, RestrictedRequest
from rota.core.runs.options import Order
from rota.core.runs.outcome import Report
from rota.core.runs.run import RunFilter
from rota.core.states import Outcome, RunState
from rota.core.workers.replicas import Replicas
from rota.core.workers.requirements import MetRequirements, met_by
from rota.engine.worker.worker import Worker
from rota.registry.jobs import Registry
from rota.store import Store
from rota.verbs.verb import Declared
from tests.costs.questions import LEFT_OUT, Subjects, ask, questions
from tests.support.clock import MINUTE, ManualClock
from tests.support.runs.runs import LEASE_MICROS, WORK, WORKER, claim, make, report_of
from tests.support.schedules.schedules import make_schedule

COUNT = 100
LIMITED = JobDefinition(name="limited", limits=(Limit(max=1_000_000),))
KEYED = JobDefinition(name="keyed", limits=(Limit(max=1, by=("account",)),))
WIDE = JobDefinition(name="wide", limits=(Limit(max=1_000, by=("account",)),))
URL = "https://example.com"
FAILED = RunFilter(states=(RunState.FAILED,))
REPLICATED = JobDefinition(name="replicated", replicas=Replicas(count=1))
KNOWN = {"work": 1, "limited": 1, "keyed": 1, "wide": 1, "replicated": 1}

Arrange = Callable[["World"], Awaitable[Any]]
Act = Callable[["World", Any], Awaitable[object]]


class World:
    """A store, a client of it, and the clock of both."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.client = Client(store, Registry(), Config())
        app = Rota()

        @app.job(name=WORK.name)
        async def work(account: str) -> None: ...

        self.registry = app.registry
        self.producer = Client(store, app.registry, Config())
        """A client of an app that declares the job in code."""

    async def enqueue(self, job: JobDefinition = WORK, count: int = COUNT, **options: Any) -> None:
        await self.store.enqueue([make(job, payload={"account": str(n)}, **options) for n in range(count)])

    async def order(self, count: int = COUNT) -> None:
        """Enqueue as applications do: arguments are bound, checked and encoded, and each run has its handle."""
        given: dict[str, Any] = {}
        orders = [Order(WORK.name, {"account": str(n)}, given) for n in range(count)]
        await (self.producer.enqueue(orders[0]) if count == 1 else self.producer.enqueue_many(orders))

    async def work_off(self) -> list[str]:
        """Claim, call the handlers and report, as a worker does."""
        config = Config(concurrency=COUNT)
        return await Worker(self.store, self.registry, WORKER, config).drain_once()

    async def claimed(self) -> list[Claim]:
        await self.enqueue()
        return await claim(self.store, COUNT, known=KNOWN)

    async def settle(self) -> None:
        """End every run, so that an operation finds only what its own arrangement made."""
        self.clock.advance(60 * MINUTE)  # retries and delays are over, answers that are kept for a while are forgotten
        while (await self.store.promote(500)).count:
            pass
        await self.finish()

    async def finish(self) -> None:
        """End every run that can be claimed or is held."""
        while held := await self._held():
            await self.store.report([Report(id, fence, Outcome.SUCCEEDED, limited=True) for id, fence in held])
        await self.conduct()

    async def _held(self) -> list[tuple[str, int]]:
        """Claim what can be claimed; return all leases."""
        await claim(self.store, 500, known=KNOWN)
        await self.limited()
        await self.restricted()
        return await self.store.leases_of(WORKER.id)

    async def limited(self) -> list[Claim]:
        request = LimitedRequest(WORKER.id, "worker", ("default",), KNOWN, LEASE_MICROS, COUNT, PLAIN)
        return (await self.store.claim_limited(request)).claims

    async def _met(self) -> MetRequirements:
        """Requirements that a worker with all labels meets."""
        return met_by(msgspec.structs.replace(WORKER, labels=("gpu",)), await self.store.known_requirements())

    async def conduct(self) -> None:
        while (await self.store.conducts.step(absent=False)).count:
            pass

    async def in_order(self, count: int = COUNT) -> list[Claim]:
        needs = await self.store.known_requirements()
        request = OrderedRequest(
            worker_id=WORKER.id,
            name="worker",
            asks=(QueueRequest("default", count),),
            known=KNOWN,
            lease=LEASE_MICROS,
            slots=count,
            solo=SUSPECTS,
            met=met_by(msgspec.structs.replace(WORKER, labels=("gpu",)), needs),
            needs=frozenset(needs),
        )
        answer = await self.store.claim_in_order(request)
        return [*answer.others, *answer.plain]

    async def restricted(self) -> list[Claim]:
        met = await self._met()
        request = RestrictedRequest(WORKER.id, "worker", ("default",), KNOWN, LEASE_MICROS, COUNT, PLAIN, met)
        return (await self.store.claim_restricted(request)).claims


class Operation(msgspec.Struct, frozen=True):
    """An operation: `arrange` makes what `act` then acts on; only `act` is measured."""

    name: str
    arrange: Arrange
    act: Act


async def _at_rest(world: World) -> None:
    await world.settle()


async def _due_schedules(world: World) -> None:
    """Let all schedules have one due plan time; their former runs have ended."""
    if not await world.store.schedules.get("schedule 0"):
        for number in range(COUNT):
            await make_schedule(world.store, f"schedule {number}", every("1m"))
    await world.settle()
    await world.store.planning.plan(COUNT, {})
    await world.finish()
    world.clock.advance(MINUTE)


def _enqueue(name: str, job: JobDefinition = WORK, count: int = COUNT, **options: Any) -> Operation:
    async def arrange(world: World) -> Any:
        await world.settle()
        world.clock.advance(MINUTE)
        stamp = world.store.clock.micros()
        keys = ({"key": f"{stamp}-{n}"} if options.get("unique") else {} for n in range(count))
        return [make(job, payload={"account": str(n)}, **options, **key) for n, key in enumerate(keys)]

    return Operation(name, arrange, lambda world, runs: world.store.enqueue(runs))


def _waiting(job: JobDefinition = WORK, **options: Any) -> Arrange:
    async def arrange(world: World) -> None:
        await world.settle()
        await world.enqueue(job, **options)

    return arrange


async def _few_keys(world: World) -> None:
    """Let many runs wait under each of a few keys: a claim must not look at them all."""
    await world.settle()
    for _ in range(COUNT):
        await world.enqueue(WIDE, COUNT // 10)


async def _replicas(world: World) -> None:
    await world.settle()
    await world.enqueue(REPLICATED)
    await world.conduct()


async def _limited_claims(world: World) -> Any:
    await world.settle()
    await world.enqueue(LIMITED)
    return [report_of(claim, Outcome.SUCCEEDED) for claim in await world.limited()]


def _report(name: str, outcome: Outcome, **facts: Any) -> Operation:
    async def arrange(world: World) -> Any:
        await world.settle()
        return [report_of(claim, outcome, **facts) for claim in await world.claimed()]

    return Operation(name, arrange, lambda world, reports: world.store.report(reports))


async def _claimed(world: World) -> Any:
    await world.settle()
    return [(claim.run_id, claim.fence) for claim in await world.claimed()]


async def _later(world: World) -> None:
    await world.settle()
    await world.enqueue(delay="1m")
    world.clock.advance(2 * MINUTE)


async def _expired(world: World) -> None:
    await world.settle()
    await world.claimed()
    world.clock.advance(MINUTE)


async def _a_waiting_run(world: World) -> str:
    await world.settle()
    await world.enqueue(count=1)
    return (await world.client.list(limit=1))[0].id


async def _a_failed_run(world: World) -> str:
    run_id = await _a_waiting_run(world)
    claims = await claim(world.store, 1, known=KNOWN)
    await world.store.report([report_of(claim, Outcome.FAILED) for claim in claims])
    return run_id


async def _a_name(world: World) -> str:
    await world.settle()
    return f"made at {world.store.clock.micros()}"


async def _subjects(world: World) -> Subjects:
    run_id = await _a_failed_run(world)
    await world.store.extend(WORKER, [], LEASE_MICROS)  # or the worker is silent for too long
    return Subjects(run_id, "work", "schedule 0", WORKER.id)


def _question(name: str, verb: Declared) -> Operation:
    return Operation(name, _subjects, lambda world, about: ask(world.client, verb, about))


async def _counted(world: World) -> None:
    """Let the totals over all jobs have been asked for a moment ago, by any server."""
    await _subjects(world)
    await world.client.scheduler_metrics()


async def _to_count(world: World) -> None:
    """Let runs have ended that nobody has counted yet."""
    await world.settle()
    await world.store.prune(lambda _: Retention(), thorough=False)
    claims = await world.claimed()
    await world.store.report([report_of(claim, Outcome.SUCCEEDED) for claim in claims])


async def _changed_documents(world: World) -> list[dict[str, Any]]:
    """Return documents of schedules that differ from those applied before."""
    await world.settle()
    told = {"job": WORK.name, "every": "1d", "description": f"as of {world.store.clock.micros()}"}
    world.clock.advance(MINUTE)
    return [{"name": f"applied {number}", **told} for number in range(COUNT)]


OPERATIONS = [
    _enqueue("enqueue one", count=1),
    _enqueue("enqueue"),
    Operation("enqueue one, by a client", _at_rest, lambda world, _: world.order(1)),
    Operation("enqueue, by a client", _at_rest, lambda world, _: world.order()),
    _enqueue("enqueue, unique", unique=True),
    _enqueue("enqueue, under a limit", LIMITED),
    _enqueue("enqueue, under a limit by key", KEYED),
    _enqueue("enqueue, for labelled workers", labels=["gpu"]),
    Operation("claim one", _waiting(), lambda world, _: claim(world.store, 1, known=KNOWN)),
    Operation("claim", _waiting(), lambda world, _: claim(world.store, COUNT, known=KNOWN)),
    Operation("claim, nothing waits", _at_rest, lambda world, _: claim(world.store, known=KNOWN)),
    Operation("claim, under a limit", _waiting(LIMITED), lambda world, _: world.limited()),
    Operation("claim, under a limit by key", _waiting(KEYED), lambda world, _: world.limited()),
    Operation("claim, labelled", _waiting(labels=["gpu"]), lambda world, _: world.restricted()),
    Operation("in order, one", _waiting(), lambda world, _: world.in_order(1)),
    Operation("in order, nothing waits", _at_rest, lambda world, _: world.in_order()),
    Operation("in order, by key", _waiting(KEYED), lambda world, _: world.in_order()),
    Operation("in order, labelled", _waiting(labels=["gpu"]), lambda world, _: world.in_order()),
    Operation("extend", _claimed, lambda world, held: world.store.extend(WORKER, held, LEASE_MICROS)),
    _report("report success", Outcome.SUCCEEDED),
    _report("report failure, retried", Outcome.FAILED, retry_in=1),
    _report("report failure", Outcome.FAILED),
    Operation("promote", _later, lambda world, _: world.store.promote(COUNT)),
    Operation("promote, nothing is due", _at_rest, lambda world, _: world.store.promote(COUNT)),
    Operation("reap", _expired, lambda world, _: world.store.reap(COUNT)),
    Operation("reap, nothing expired", _claimed, lambda world, _: world.store.reap(COUNT)),
    Operation("plan", _due_schedules, lambda world, _: world.store.planning.plan(COUNT, {})),
    Operation("count", _to_count, lambda world, _: world.store.prune(lambda _: Retention(), thorough=False)),
    Operation("tidy", _at_rest, lambda world, _: world.store.tidy()),
    Operation("prune", _at_rest, lambda world, _: world.store.prune(lambda _: Retention(), thorough=False)),
    Operation("cancel one", _a_waiting_run, lambda world, run_id: world.client.cancel(run_id)),
    Operation("retry one", _a_failed_run, lambda world, run_id: world.client.retry(run_id)),
    Operation("create a job", _a_name, lambda world, name: world.client.data_jobs.create(name, "http", url=URL)),
    Operation("list runs of a job", _at_rest, lambda world, _: world.client.page(RunFilter(job="work"), limit=50)),
    Operation("list failed runs", _at_rest, lambda world, _: world.client.page(FAILED, limit=50)),
    Operation("scheduler metrics, kept", _counted, lambda world, _: world.client.scheduler_metrics()),
    *(_question(name, verb) for name, verb in questions().items() if verb.verb.path not in LEFT_OUT),
]
LAST = [
    Operation("work off, by a worker", _waiting(), lambda world, _: world.work_off()),
    Operation("claim, under few keys", _few_keys, lambda world, _: world.limited()),
    Operation("report success, under a limit", _limited_claims, lambda world, reports: world.store.report(reports)),
    Operation("claim, replicas", _replicas, lambda world, _: world.restricted()),
    Operation(
        "apply schedules", _changed_documents, lambda world, new: world.client.schedules.apply_documents(new, "me")
    ),
]
"""Not beside a crowd: a worker would work that off, too; and once there were replicas, every worker looks for some,
also in what is measured after it."""
