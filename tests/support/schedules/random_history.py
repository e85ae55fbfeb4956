"""A schedule with a random history: planned, paused, edited, triggered, pruned and backfilled over time."""

import contextlib
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec

from rota.core.calendar.triggers import Trigger, cron, every
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.ledger.backfill import BackfillOrder, Ran
from rota.core.ledger.verify import Verification
from rota.core.runs.options import scope_of
from rota.core.states import Outcome
from rota.errors import Conflict, Invalid
from rota.store import Store
from rota.values.clock import HostClock
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim, claim_limited, tell
from tests.support.schedules.schedules import HOUR, MINUTE, edit, make_schedule, plan

SCOPES = [("shop", "a"), ("shop", "b"), ("shop", "c")]
JOB = JobDefinition(name="work", retry=msgspec.structs.replace(JobDefinition(name="x").retry, max_attempts=1))
SHORT = Retention(keep=2, keep_for=timedelta(minutes=20))


def ahead() -> ManualClock:
    """Return a clock at a full hour in the future: behind the real clock, rows would look too young to prune."""
    clock = ManualClock()
    goal = (HostClock().micros() // HOUR + 2) * HOUR
    clock.advance(timedelta(microseconds=goal - clock.micros()))
    return clock


class Life:
    """One schedule `s`; each step is drawn by chance, with whatever options fit together."""

    def __init__(self, store: Store, clock: ManualClock, seed: int) -> None:
        self.store, self.clock, self.chance = store, clock, random.Random(seed)
        self.told: list[str] = []

    async def begin(self) -> None:
        trigger, options = self._shape()
        self.told.append(f"create {trigger} {options}")
        await make_schedule(self.store, trigger=trigger, job=JOB, **options)

    def _shape(self) -> tuple[Trigger, dict[str, Any]]:
        pick = self.chance.choice
        triggers: list[Trigger] = [every("1m"), every("3m"), cron("*/2 * * * *")]
        triggers.append(cron("7,9,30 * * * *", "Europe/Berlin"))
        trigger = pick(triggers)
        catch_up = pick(["none", "latest", {"mode": "latest", "window": "10m"},
                         {"mode": "all", "keep": 4, "per_tick": 2}])  # fmt: skip
        options: dict[str, Any] = {
            "catch_up": catch_up,
            "overlap": pick(["skip", "allow", "queue_one", "cancel_previous"]),
            "failure": pick(["run_new", "skip", "pause"]),
            "scopes": pick([(), SCOPES[:2], SCOPES[1:], "shops", "shops"]),
            "delay": pick(["0s", "0s", "90s"]),
        }
        if self.chance.random() < 0.2:
            options["max_runs"] = self.chance.randint(1, 8)
        return trigger, options

    async def step(self) -> None:
        steps: list[tuple[int, Callable[[], Awaitable[object]]]] = [
            (8, self.pass_time), (8, self.plan), (4, self.work), (2, self.pause), (2, self.resume), (2, self.edit),
            (1, self.trigger), (2, self.prune), (2, self.backfill), (1, self.pause_job), (1, self.resume_job),
        ]  # fmt: skip
        (act,) = self.chance.choices([act for _, act in steps], [weight for weight, _ in steps])
        self.told.append(act.__name__)
        await act()

    async def pass_time(self) -> None:
        minutes = self.chance.choice([1, 1, 2, 3, 5, 17, 45, 200])
        self.told[-1] += f" {minutes}m"
        self.clock.advance(timedelta(minutes=minutes, seconds=self.chance.choice([0, 0, 1, 20])))

    async def plan(self) -> None:
        """Return the scopes that the provider would name at this moment."""
        shops = [scope_of(scope) for scope in SCOPES if self.chance.random() < 0.6]
        await plan(self.store, shops=tuple(shops))

    async def work(self) -> None:
        """Whatever may be claimed is done, or fails."""
        for claimed in [*await claim(self.store, 3), *await claim_limited(self.store, self.chance.randint(1, 50))]:
            await tell(self.store, claimed, self.chance.choice([Outcome.SUCCEEDED, Outcome.FAILED]))

    async def pause(self) -> None:
        until = self.clock.micros() + 30 * MINUTE if self.chance.random() < 0.3 else None
        await self.store.schedules.pause("s", "why not", "me", until)

    async def resume(self) -> None:
        mode = self.chance.choice(["skip", "latest", "all"])
        self.told[-1] += f" {mode}"
        await self.store.schedules.resume("s", mode, "me")

    async def pause_job(self) -> None:
        await self.store.pause_job("work", None, "me")

    async def resume_job(self) -> None:
        await self.store.resume_job("work", self.chance.choice(["skip", "latest", "all"]), "me")

    async def edit(self) -> None:
        trigger, options = self._shape()
        options["enabled"] = self.chance.random() < 0.9
        self.told[-1] += f" {trigger} {options}"
        await edit(self.store, "s", trigger, **options)

    async def trigger(self) -> None:
        with contextlib.suppress(Conflict, Invalid):
            await self.store.schedules.trigger("s", None, force=self.chance.random() < 0.5)

    async def prune(self) -> None:
        await self.store.prune(lambda _job: SHORT)

    async def backfill(self) -> None:
        to_at = self.clock.micros() - self.chance.choice([0, 0, 30 * MINUTE])
        order = BackfillOrder(
            from_at=to_at - self.chance.choice([10 * MINUTE, HOUR, 3 * HOUR]),
            to_at=to_at,
            ran=self.chance.choice([Ran.NONE, Ran.NONE, Ran.FAILED, Ran.ALL]),
            concurrency=self.chance.choice([1, 3, 100]),
        )
        self.told[-1] += f" {order}"
        with contextlib.suppress(Invalid):
            await self.store.ledger.backfill("s", order)

    async def verify(self) -> Verification:
        found = await self.store.ledger.verify("s")
        assert found.ok, "\n".join([*self.told, *(finding.words for finding in found.findings)])
        return found
