"""Build a run of every kind in every state that it can reach, for tests of readers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from rota.core.calendar.triggers import every
from rota.core.progress.control_flow import Fail, Retry, Snooze
from rota.testing import Harness
from rota.testing.harness.manual_worker import HandWorker

SCOPE = ("tenant", "x")
SCHEMA: dict[str, Any] = {"type": "object"}
SECOND = timedelta(seconds=1)

Kind = dict[str, Any]
End = Callable[["Life", HandWorker, str], Awaitable[None]]

KINDS: dict[str, tuple[Kind, Kind]] = {
    "plain": ({"steps": ["read", "write"]}, {}),
    "delayed": ({}, {"delay": "1s"}),
    "limited": ({"max_concurrency": 1}, {"scope": SCOPE}),
    "rated": ({"limit": {"max": 1_000, "per": "1m"}}, {}),
    "needing": ({"labels": ["gpu"]}, {}),
    "replicas": ({"replicas": 2}, {"scope": SCOPE}),
    "replicas-of-all": ({"replicas": {"all": True, "allowed_failures": 1}}, {}),
}
"""Options of the job, and of the run."""


class Life:
    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self._held: list[HandWorker] = []

    async def live(self) -> None:
        """Build all runs. Those that stay active come last: time that passes would reclaim their leases."""
        await self.harness.client.quotas.update(*SCOPE, max_concurrency=1_000)
        self.harness.app.external("outside", SCHEMA, timeout="1h")
        for name in ("first", "second"):
            await self.harness.declare(name, queue="parts")
        parts = [{"step": "one", "job": "first"}, {"step": "two", "job": "second"}]
        self.harness.app.pipeline("piped", parts, backoff="1s")
        await self.harness.store.save_jobs(self.harness.app.registry.definitions())
        for kind, (options, _) in KINDS.items():
            await self.harness.declare(kind, **{"max_attempts": 2, "backoff": "1m", **options})
        for end in (*ENDS, *LEFT):
            for kind in KINDS:
                await self._one(kind, end)
        await self._several_parts()
        await self._made_by_others()
        await self._elsewhere()

    async def _one(self, kind: str, end: End) -> None:
        """Build one run in a queue of its own, so that its workers meet no other."""
        queue = f"{kind}-{end.__name__.strip('_')}"
        names = "ab" if "replicas" in kind else "a"
        workers = [self.harness.worker(f"{queue}-{name}", queues=[queue], labels=["gpu"]) for name in names]
        for worker in workers:
            await worker.heartbeat()
        options = {"queue": queue, **({"max_attempts": 1} if end is _lost else {}), **KINDS[kind][1]}
        run = await self.harness.enqueue(kind, options)
        if end is _waiting_to_begin:
            return
        self.harness.clock.advance(2 * SECOND)
        await self.step()
        for worker in workers:
            if end is not _cancelled_before_it_began:
                await worker.claim()
            await end(self, worker, run.id)
            await self.step()

    async def step(self) -> None:
        await self.harness.promoter.step()
        while await self.harness.conductor.step() == timedelta(0):
            pass

    async def _several_parts(self) -> None:
        for done in range(3):
            await self.harness.enqueue("piped")
            for _ in range(done):
                await (await self.harness.worker(queues=["parts"]).claim()).finish()
            if done < 2:
                await (await self.harness.worker(queues=["parts"]).claim()).fail(error=Fail("no"))

    async def _made_by_others(self) -> None:
        """Build runs made by a schedule, a retry, a key, a parent; and skipped by each policy that skips."""
        harness = self.harness
        for overlap in ("skip", "cancel_previous", "queue_all"):
            await harness.client.schedules.create(f"by-{overlap}", "first", every("1m"), overlap=overlap)
        for _ in range(3):
            harness.clock.advance(timedelta(minutes=1))
            await harness.planner.step()
        await harness.declare("narrow", limit={"max": 1, "when_full": "cancel_oldest"})
        await harness.declare("hasty", limit={"max": 1, "when_full": "skip"})
        for job in ("narrow", "narrow", "hasty", "hasty"):
            await harness.enqueue(job)
        failed = await harness.enqueue("second", {"queue": "failing", "max_attempts": 1})
        await harness.enqueue("second", {"after": [failed.id], "queue": "failing"})
        await (await harness.worker(queues=["failing"]).claim()).fail(error=Fail("no"))
        await harness.client.retry(failed.id)

    async def _elsewhere(self) -> None:
        """Claimed, and ended, by somebody outside, and left to them."""
        harness, external = self.harness, self.harness.client.external
        for _ in range(4):
            await harness.enqueue("outside")
        one, two, three, _ = await external.claim("somebody", max=4)
        await external.complete(one.run_id, one.fence, {"n": 1})
        await external.fail(two.run_id, two.fence, {"message": "no"}, retry=False)
        await harness.client.cancel(three.run_id)


async def _succeeded(life: Life, worker: HandWorker, _: str) -> None:
    for run_id in worker.claims:
        await worker.progress(run_id, percentage=40, summary="so far")
        await worker.say("a line", run_id)
        await worker.step("read", 7, run_id)
        await worker.finish(run_id, {"n": 1})


async def _failed(life: Life, worker: HandWorker, _: str) -> None:
    for run_id in worker.claims:
        await worker.fail(run_id, Fail("no"))


async def _timed_out(life: Life, worker: HandWorker, _: str) -> None:
    """Time out in both attempts."""
    for _again in range(2):
        for run_id in list(worker.claims):
            await worker.time_out(run_id)
        life.harness.clock.advance(61 * SECOND)
        await life.step()
        worker.claims.clear()
        await worker.heartbeat()
        await worker.claim()


async def _lost(life: Life, worker: HandWorker, _: str) -> None:
    life.harness.clock.advance(life.harness.lease + SECOND)
    await life.harness.reaper.step()


async def _cancelled_before_it_began(life: Life, worker: HandWorker, run: str) -> None:
    await life.harness.client.cancel(run, reason="not wanted", actor="ann")


async def _cancelled(life: Life, worker: HandWorker, run: str) -> None:
    await life.harness.client.cancel(run, reason="not wanted", actor="ann")
    await life.step()
    for run_id in worker.claims:
        await worker.cancelled(run_id)


async def _ended_outside(life: Life, worker: HandWorker, _: str) -> None:
    for run_id in worker.claims:
        await worker.wait_for_external("1h", run=run_id)
        await life.harness.client.external.complete(run_id, worker.fence(run_id), {"n": 1})


async def _given_up_outside(life: Life, worker: HandWorker, _: str) -> None:
    for run_id in worker.claims:
        await worker.wait_for_external("1s", run=run_id)
    life.harness.clock.advance(2 * SECOND)
    await life.harness.reaper.step()


async def _waiting_to_begin(life: Life, worker: HandWorker, _: str) -> None: ...


async def _running(life: Life, worker: HandWorker, _: str) -> None: ...


async def _cancelling(life: Life, worker: HandWorker, run: str) -> None:
    await life.harness.client.cancel(run, reason="not wanted", actor="ann")


async def _tried_again(life: Life, worker: HandWorker, _: str) -> None:
    for run_id in worker.claims:
        await worker.fail(run_id, Retry(after="1h"))


async def _put_off(life: Life, worker: HandWorker, _: str) -> None:
    for run_id in worker.claims:
        await worker.fail(run_id, Snooze("1h"))


async def _handed_back(life: Life, worker: HandWorker, _: str) -> None:
    for run_id in worker.claims:
        await worker.hand_back(run_id)


async def _waiting_outside(life: Life, worker: HandWorker, _: str) -> None:
    for run_id in worker.claims:
        await worker.wait_for_external("1h", run=run_id)


ENDS: tuple[End, ...] = (
    *(_succeeded, _failed, _timed_out, _lost, _cancelled_before_it_began, _cancelled),
    *(_ended_outside, _given_up_outside),
)
LEFT: tuple[End, ...] = (
    _waiting_to_begin,
    _running,
    _cancelling,
    _tried_again,
    _put_off,
    _handed_back,
    _waiting_outside,
)
