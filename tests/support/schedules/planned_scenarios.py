"""Run scenarios of schedules through the real planner, second by second, with scripted workers."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any

from rota.core.runs.claim import Claim
from rota.core.runs.run import RunFilter
from rota.core.states import Outcome, RunState
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.instants import micros_at
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, report_of
from tests.support.schedules.policy_oracle import Story, Told
from tests.support.schedules.schedules import plan

SECOND = 1_000_000


async def live_through(store: Store, clock: ManualClock, story: Story, tasks: Collection[str]) -> dict[str, list[Told]]:
    """Play a story; return what each plan time of each schedule got. A task names a schedule and its job."""
    start = clock.micros()
    workers = Workers(store, clock, story, tasks)
    scans = set(story.scans())
    for now in range(1, story.until + 1):
        clock.advance(timedelta(seconds=1))
        await workers.end()
        await workers.begin()  # what waited for an end does not wait for the plan time at the same second
        if now in scans:
            await plan(store, 500)
            await workers.stop()
        await store.promote(500)
        await workers.begin()
    return await became(store, workers.began, start)


class Workers:
    """As many workers as there is work for, which follow the story."""

    def __init__(self, store: Store, clock: ManualClock, story: Story, tasks: Collection[str]) -> None:
        self.began: dict[str, int] = {}
        self._store, self._clock, self._story = store, clock, story
        self._known: dict[str, Any] = {"known": dict.fromkeys(tasks, 1)}
        self._start = clock.micros()
        self._held: dict[str, tuple[Claim, int, int]] = {}
        self._numbers: dict[str, int] = {}

    @property
    def now(self) -> int:
        return (self._clock.micros() - self._start) // SECOND

    async def end(self) -> None:
        """End what is over, then cancel what was asked to stop: there may be more of it since."""
        over = [(held, number) for held, number, until in self._held.values() if until == self.now]
        await self._report((held, self._outcome(number)) for held, number in over)

    async def stop(self) -> None:
        async def body(tx: Tx) -> list[str]:
            return [
                str(id) for (id,) in await tx.fetch_sql("select run_id from rota_lease where cancel_at is not null")
            ]

        asked = await self._store.database.read(body)
        await self._report((self._held[id][0], Outcome.CANCELLED) for id in asked)

    async def begin(self) -> None:
        store, known = self._store, self._known
        while claims := [*await claim(store, 500, **known), *await claim_limited(store, 500, **known)]:
            for held in claims:
                number = await self._number(held.run_id)
                self.began.setdefault(held.run_id, self.now)
                self._held[held.run_id] = held, number, self.now + self._story.lasts(number)

    def _outcome(self, number: int) -> Outcome:
        return Outcome.FAILED if self._story.fails(number) else Outcome.SUCCEEDED

    async def _report(self, ends: Iterable[tuple[Claim, Outcome]]) -> None:
        reports = [report_of(held, outcome, retry_in=self._retry_in(held, outcome)) for held, outcome in ends]
        for report in reports:
            del self._held[report.run_id]
        assert not reports or not (await self._store.report(reports)).refused

    def _retry_in(self, held: Claim, outcome: Outcome) -> int | None:
        delays = self._story.retries
        again = outcome is Outcome.FAILED and held.attempt < held.max_attempts and held.attempt <= len(delays)
        return delays[held.attempt - 1] * SECOND if again else None

    async def _number(self, run_id: str) -> int:
        """Return the position of the run among its schedule's runs, by plan time."""
        if run_id not in self._numbers:
            await self._count()
        return self._numbers[run_id]

    async def _count(self) -> None:
        async def body(tx: Tx) -> Any:
            return await tx.fetch_sql("select id, job, state, reason from rota_run order by id")

        made: dict[str, int] = {}
        for id, job, state, reason in await self._store.database.read(body):
            if state != "skipped" or str(reason).startswith("superseded"):
                made[job] = self._numbers[str(id)] = made.get(job, 0) + 1


async def became(store: Store, began: dict[str, int], start: int) -> dict[str, list[Told]]:
    """Return what each plan time of each schedule got."""
    found: dict[str, list[Told]] = {}
    after: str | None = None
    while page := await store.list_runs(RunFilter(), 500, after):
        after = page[-1].id
        for run in page:
            assert run.schedule is not None
            assert run.plan_time is not None
            fate = {RunState.SUCCEEDED: "run"}.get(run.state, run.state.value if run.state.is_final else "run")
            ended = None if run.finished_at is None else (micros_at(run.finished_at) - start) // SECOND
            plan_time = (micros_at(run.plan_time) - start) // SECOND
            attempt = run.attempt + (run.id not in began)  # while it waits, the one that comes is not counted yet
            found.setdefault(run.schedule, []).append(Told(plan_time, fate, attempt, began.get(run.id), ended))
    return {name: sorted(told, key=lambda one: one.plan_time) for name, told in found.items()}
