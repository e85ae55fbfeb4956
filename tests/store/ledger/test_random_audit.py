"""Random lives of runs: after each act their trails match what can be seen, and no event is ever taken back."""

import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import msgspec
import pytest

from rota.core.calendar.triggers import every
from rota.core.external.external import ExternalReport, StepReport
from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.jobs.retry import Delays, RetryPolicy
from rota.core.jobs.unique import Unique
from rota.core.ledger.audit import Event
from rota.core.limits.limits import Limit
from rota.core.progress.steps import StepState
from rota.core.runs.claim import Claim
from rota.core.runs.outcome import Wait
from rota.core.runs.run import RunError, RunFilter
from rota.core.states import Outcome, RunState
from rota.errors import Conflict
from rota.store import Store
from rota.values.actor import POLICY
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.audit_trails import check, lines, repeat_everything
from tests.support.runs.runs import claim, claim_limited, make, report_of
from tests.support.schedules.ledger_oracle import rows
from tests.support.schedules.schedules import make_schedule, plan

STEPS = 100
ERROR = RunError("Jam", "paper")
WORK = JobDefinition(name="work", cancel=CancelPolicy(grace=10 * SECOND))
CAREFUL = JobDefinition(name="careful", on_lost="fail")
UNIQUE = JobDefinition(name="unique", unique=Unique(on_conflict="replace"))
OLDEST = JobDefinition(name="oldest", limits=(Limit(max=2, when_full="cancel_oldest"),))
FULL = JobDefinition(name="full", limits=(Limit(max=2, when_full="skip"),))
QUEUED = JobDefinition(name="queued", limits=(Limit(max=1),))
EXTERNAL = JobDefinition(name="outside", kind="external", retry=RetryPolicy(3, Delays((5 * SECOND,))))
JOBS = [WORK, CAREFUL, UNIQUE, OLDEST, FULL, QUEUED, EXTERNAL]

_IN_OTHER_PLACES_THAN_ONE = """
select r.id from rota_run r
where (case when r.state is null then 0 else 1 end)
    + (select count(*) from rota_ready w where w.run_id = r.id)
    + (select count(*) from rota_lease l where l.run_id = r.id)
    + (select count(*) from rota_outside o where o.run_id = r.id) <> 1
"""
_BEYOND_THEIR_LIMIT = """
select g.key from rota_gate g join rota_limit m on m.key = g.key
join rota_run_now n on n.id = g.run_id and n.state in ('running', 'waiting', 'cancelling')
group by g.key, m.max having count(*) > m.max
"""


class Lives:
    def __init__(self, store: Store, clock: ManualClock, seed: int) -> None:
        self.store, self.clock, self.chance = store, clock, random.Random(seed)
        self.held: list[Claim] = []
        self.trails: dict[str, Sequence[Event]] = {}
        self.told: list[str] = []

    async def begin(self) -> None:
        await self.store.save_jobs(JOBS)
        await make_schedule(self.store, "follows", every("20s"), overlap="cancel_previous", job=WORK)
        await make_schedule(self.store, "queues", every("30s"), overlap="queue_all", delay="5s", job=QUEUED)
        await make_schedule(self.store, "skips", every("45s"), overlap="skip", job=CAREFUL)

    async def step(self) -> None:
        acts: list[tuple[int, Callable[[], Awaitable[object]]]] = [
            (4, self.pass_time), (6, self.enqueue), (3, self.plan), (4, self.claim), (5, self.report), (2, self.cancel),
            (3, self.promote), (2, self.reap), (1, self.retry), (1, self.trigger), (1, self.cancel_job), (1, self.tidy),
            (4, self.hand_over), (4, self.end_outside), (2, self.say_outside),
        ]  # fmt: skip
        (act,) = self.chance.choices([act for _, act in acts], [weight for weight, _ in acts])
        self.told.append(act.__name__)
        await act()
        await self.look()

    async def look(self) -> None:
        for run in await self.store.list_runs(RunFilter(), 500):
            events = await self.store.ledger.events_of_run(run.id)
            check(events, run.state)
            before = self.trails.get(run.id, [])
            assert events[: len(before)] == before, (self.told, lines(before), lines(events))
            self.trails[run.id] = events
        for broken in (_IN_OTHER_PLACES_THAN_ONE, _BEYOND_THEIR_LIMIT):
            assert await rows(self.store, broken) == [], self.told

    async def pass_time(self) -> None:
        self.clock.advance(timedelta(seconds=self.chance.choice([1, 1, 3, 12, 31])))

    async def enqueue(self) -> None:
        job = self.chance.choice(JOBS)
        delay = self.chance.choice(["0s", "0s", "2s", "40s"])
        await self.store.enqueue([make(job, delay=delay, max_attempts=self.chance.choice([1, 2, 5]))])

    async def plan(self) -> None:
        await plan(self.store)

    async def claim(self) -> None:
        known = {job.name: 1 for job in JOBS}
        self.held += await claim(self.store, self.chance.randint(1, 3), known=known)
        self.held += await claim_limited(self.store, self.chance.randint(1, 3), known=known)

    async def report(self) -> None:
        """Report an outcome, sometimes a repeated one, or one of a lease that is long gone."""
        if not self.held:
            return
        for held in self.chance.sample(self.held, self.chance.randint(1, min(3, len(self.held)))):
            outcome = self.chance.choice([outcome for outcome in Outcome if outcome is not Outcome.LOST])
            again = self.chance.choice([None, 0, 5_000_000, 60_000_000])
            await self.store.report([report_of(held, outcome, retry_in=again)])

    async def hand_over(self) -> None:
        for held in self.held and self.chance.sample(self.held, 1):
            wait = Wait(self.chance.choice([5_000_000, 600_000_000]), self.chance.choice([None, "approval"]))
            await self.store.report([report_of(held, Outcome.SNOOZED, wait=wait)])

    async def end_outside(self) -> None:
        """End an external run, sometimes again, and with another outcome."""
        outcome = self.chance.choice([Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED])
        ending = ExternalReport(outcome, result="1", error=ERROR if outcome is Outcome.FAILED else None)
        for held in self.held and self.chance.sample(self.held, 1):
            with contextlib.suppress(Conflict):
                await self.store.external.finish(held.run_id, held.fence, ending)

    async def say_outside(self) -> None:
        word = StepReport("approval", self.chance.choice([StepState.RUNNING, StepState.SUCCEEDED]), "2")
        for held in self.held and self.chance.sample(self.held, 1):
            with contextlib.suppress(Conflict):
                await self.store.external.progress(held.run_id, held.fence, 30_000_000, 50, "half")
                await self.store.external.step(held.run_id, held.fence, 30_000_000, word)

    async def cancel(self) -> None:
        run_id = self.chance.choice([*self.trails] or [""])
        actor = self.chance.choice(["ann", "bob", f"{POLICY}overlap", None])
        if run_id:
            with contextlib.suppress(Conflict):
                await self.store.cancel(run_id, self.chance.choice([None, "why not"]), actor)

    async def promote(self) -> None:
        await self.store.promote(self.chance.randint(1, 10))

    async def reap(self) -> None:
        await self.store.reap(10)

    async def retry(self) -> None:
        ended = [id for id, events in self.trails.items() if events[-1].to_state in (RunState.FAILED, RunState.EXPIRED)]
        if ended:
            old = await self.store.copy_of(self.chance.choice(ended))
            again = msgspec.structs.replace(
                old, id=self.store.new_id(), retry_of=old.id, origin_id=old.origin_id or old.id, actor="ann"
            )
            await self.store.enqueue([again])

    async def trigger(self) -> None:
        with contextlib.suppress(Conflict):
            name = self.chance.choice(["follows", "queues", "skips"])
            await self.store.schedules.trigger(name, None, force=self.chance.random() < 0.5, actor="ann")

    async def cancel_job(self) -> None:
        """Cancel a job, but none with schedules, whose plan times would rest, and resume it."""
        job = self.chance.choice(["oldest", "unique", "full"])
        with contextlib.suppress(Conflict):
            await self.store.cancel_job(job, "enough", "bob")
        await self.store.resume_job(job, "skip", "bob")

    async def tidy(self) -> None:
        await self.store.tidy()


@pytest.mark.parametrize("seed", range(6))
async def test_trails_are_true(store: Store, clock: ManualClock, seed: int) -> None:
    lives = Lives(store, clock, seed)
    await lives.begin()
    for _ in range(STEPS):
        await lives.step()
    assert len(lives.trails) > 10


@pytest.mark.parametrize("seed", range(6, 9))
async def test_trails_are_true_though_every_answer_gets_lost(
    store: Store, clock: ManualClock, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat_everything(store, monkeypatch)
    lives = Lives(store, clock, seed)
    await lives.begin()
    for _ in range(STEPS):
        await lives.step()
