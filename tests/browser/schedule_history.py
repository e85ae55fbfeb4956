"""Schedules with a history: planned, run and paused on a clock of their own, up to now."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rota import Rota, after, cron, every, following, once
from rota.core.calendar.triggers import Trigger
from rota.core.schedules.schedule import define
from rota.core.states import Outcome
from rota.store import Store, open_database
from tests.browser import jobs
from tests.support.runs.runs import claim, claim_limited, tell
from tests.support.schedules.schedules import plan

HOSTILE = "<img src=x onerror=alert(1)>"
MICROS = 1_000_000


def coming_summer_time() -> datetime:
    """The day on which clocks in Berlin are put forward, if it is not just now: the last Sunday of March."""
    now = datetime.now(UTC)
    ends = (datetime(year, 3, 31, tzinfo=UTC) for year in (now.year, now.year + 1))
    return next(day for end in ends if (day := end - timedelta(days=(end.weekday() + 1) % 7)) > now + timedelta(days=3))


class PastClock:
    """Stands still, until it is moved on."""

    def __init__(self, ago: timedelta) -> None:
        self.at = (time.time_ns() // 1_000 - ago // timedelta(microseconds=1)) // MICROS * MICROS

    def micros(self) -> int:
        return self.at

    def monotonic(self) -> float:
        return self.at / MICROS


class Past:
    """`await past.make("news", "crawl", every("6h"))`, then `await past.live()` up to now."""

    def __init__(self, url: str, ago: timedelta) -> None:
        self.clock = PastClock(ago)
        self.store = Store(open_database(url, self.clock))
        self._jobs = Rota(url)
        jobs.declare(self._jobs)
        self._chance = random.Random(7)

    async def begin(self) -> None:
        await self.store.migrate()
        await self.store.save_jobs(self._jobs.registry.definitions())

    async def make(self, name: str, job: str, trigger: Trigger, **options: Any) -> None:
        known = {one.name: one for one in self._jobs.registry.definitions()}
        definition = define(known[job], trigger, options, name=name, now=await self.store.now())
        await self.store.schedules.create(name, definition, "test")

    async def live(self, step: timedelta = timedelta(hours=1), *, until: timedelta = timedelta(0)) -> None:
        """From step to step, to so long ago: what is due is planned, what waits is worked."""
        now = time.time_ns() // 1_000 - until // timedelta(microseconds=1)
        while self.clock.at < now:
            self.clock.at = min(now, self.clock.at + step // timedelta(microseconds=1))
            await plan(self.store)
            known = {one.name: one.version for one in self._jobs.registry.definitions()}
            for held in [*await claim(self.store, known=known), *await claim_limited(self.store, known=known)]:
                busy = self._chance.randrange(40, 30_000) * 1_000
                await self._end(held, busy)

    async def _end(self, held: Any, busy: int) -> None:
        self.clock.at += busy
        chance = self._chance.random()
        outcome = Outcome.SUCCEEDED if chance < 0.86 else Outcome.FAILED if chance < 0.97 else Outcome.TIMED_OUT
        await tell(self.store, held, outcome, busy=busy)


_lived: list[bytes] = []


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


async def lived_once(url: str) -> None:
    """The same for each test that asks; made for the first."""
    if _lived:
        _file(url).write_bytes(_lived[0])
        return
    await lived(url, days=12)
    _lived.append(_file(url).read_bytes())


async def lived(url: str, days: int = 30) -> None:
    """One of each kind, with what happened to them."""
    past = Past(url, timedelta(days=days))
    await past.begin()
    page = {"url": "https://example.com"}
    prompt = {"mode": "none", "grace": "8h"}
    about = "What is new, four times a day."
    await past.make("news", "crawl", every("6h"), payload=page, catch_up=prompt, description=about)
    await past.make("morning-report", "hello", cron("0 9 * * MON-FRI", "Europe/Berlin"), overlap="queue_one")
    await past.make("nightly", "hello", cron("30 2 * * *", "Europe/Berlin"), catch_up={"mode": "all", "keep": 5})
    await past.make("tidy", "hello", after("12h"), description="Half a day after the last time was over.")
    await past.make("told", "hello", following("crawl", on="end"))
    await past.make("over", "hello", once(datetime.fromtimestamp(past.clock.at / MICROS, UTC) + timedelta(hours=3)))
    accounts = [("account", str(number)) for number in range(3)]
    await past.make("per-account", "hello", every("1d"), scopes=accounts, jitter="10m", max_concurrency=2)
    await past.make(HOSTILE, "hello", every("1d"), description=HOSTILE, failure="half_open")
    await past.make("rests", "hello", every("2h"))
    await past.make("off", "hello", every("2h"), enabled=False)
    spring = coming_summer_time() - timedelta(days=1)
    await past.make("spring", "hello", cron("30 2 * * *", "Europe/Berlin"), start_at=spring)
    await past.live(timedelta(hours=6), until=timedelta(days=2))
    await past.store.schedules.pause("rests", "the other side is being moved", "ada", None)
    await past.live(timedelta(hours=30))  # nobody was there: some are covered, some are missed
    await past.store.close()
