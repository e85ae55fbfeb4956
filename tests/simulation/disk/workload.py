"""A life on an SQLite store that meets everything: each call is made through one door, where a test can stand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.ledger.backfill import BackfillOrder
from rota.core.limits.limits import Limit
from rota.core.runs.claim import Claim
from rota.core.runs.run import NewRun
from rota.core.schedules.revisions import Change
from rota.core.schedules.schedule import define
from rota.core.states import Outcome
from rota.errors import DuplicateRun
from rota.store import Store, open_database
from tests.support.clock import MINUTE, SECOND, ManualClock
from tests.support.runs.runs import LEASE, LEASE_MICROS, WORK, WORKER, claim, claim_limited, make, report_of
from tests.support.schedules.schedules import HOUR, plan

T = TypeVar("T")

LIMITED = JobDefinition(name="limited", limits=(Limit(max=1, by=("key",)),))
KNOWN = {WORK.name: 1, LIMITED.name: 1}
LONG = {"text": "so that pages fill and the log is often moved into the file: " * 20}
SHORT_RETENTION = Retention(keep=2, keep_for=timedelta(minutes=1))
CATCH_UP = {"mode": "all", "keep": 5}


class Ids:
    """Version 7 as the real ones, but by the clock of the test, and the same each time."""

    def __init__(self, clock: ManualClock) -> None:
        self.given = 0
        self._clock = clock

    def __call__(self) -> str:
        self.given += 1
        millis = f"{self._clock.micros() // 1_000:012x}"
        return f"{millis[:8]}-{millis[8:]}-7000-8000-{self.given:012x}"


class Told(msgspec.Struct, frozen=True):
    """What a caller knows of a run; `state` if it is final. It learnt so at this moment of the disk."""

    moment: int
    run_id: str
    state: str | None = None


class Life:
    """`moment` tells where the disk is; `clock` is moved by the life alone."""

    store: Store

    def __init__(self, url: str, clock: ManualClock, moment: Callable[[], int]) -> None:
        self.url = url
        self.clock = clock
        self.new_id = Ids(clock)
        self.told: list[Told] = []
        self._moment = moment

    async def do(self, act: Callable[[], Awaitable[T]]) -> T:
        """Every call passes here."""
        return await act()

    async def open(self) -> None:
        self.store = Store(open_database(self.url, self.clock), self.new_id)
        await self.do(self.store.migrate)

    async def close(self) -> None:
        await self.store.close()

    async def restart(self) -> None:
        await self.close()
        await self.open()

    def runs(self, count: int, job: JobDefinition = WORK, **options: Any) -> list[NewRun]:
        return [make(job, id=self.new_id(), **options) for _ in range(count)]

    async def put(self, count: int = 1, job: JobDefinition = WORK, **options: Any) -> list[str]:
        runs = self.runs(count, job, **options)
        answers = await self.do(lambda: self.store.enqueue(runs))
        self.told += [Told(self._moment(), answer.id) for answer in answers]
        return [answer.id for answer in answers]

    async def claim(self, wanted: int) -> list[Claim]:
        return await self.do(lambda: claim(self.store, wanted, known=KNOWN))

    async def claim_limited(self) -> list[Claim]:
        return await self.do(lambda: claim_limited(self.store, known=KNOWN))

    async def tell(self, held: Claim, outcome: Outcome, **facts: Any) -> None:
        report = report_of(held, outcome, **facts)
        assert not (await self.do(lambda: self.store.report([report]))).refused
        if outcome is Outcome.SUCCEEDED:
            self.told.append(Told(self._moment(), held.run_id, "succeeded"))

    async def cancel(self, run_id: str) -> None:
        state = (await self.do(lambda: self.store.cancel(run_id, "no longer wanted", "me"))).state
        self.told.append(Told(self._moment(), run_id, state.value if state.is_final else None))

    async def plan(self, after: timedelta) -> None:
        self.clock.advance(after)
        await self.do(lambda: plan(self.store))


async def whole(life: Life) -> None:
    await life.open()
    await life.do(lambda: life.store.save_jobs([WORK, LIMITED]))
    for _turn in range(2):
        await _runs(life)
        await _keys(life)
        await _limits(life)
        await _lost(life)
        await life.restart()
    await _schedule(life)
    await _pauses(life)
    await _at_once(life)
    await _prune(life)
    await life.put()
    await life.claim(2)
    await life.close()


async def short(life: Life) -> None:
    """Each kind of operation once."""
    await life.open()
    await life.do(lambda: life.store.save_jobs([WORK, LIMITED]))
    await _runs(life)
    await _limits(life)
    await life.restart()
    await _make_schedule(life)
    await life.plan(MINUTE)
    await life.plan(7 * MINUTE)
    await _lost(life)
    await _prune(life)
    await life.close()


async def _runs(life: Life) -> None:
    """Singly and in bulk; done, failed, snoozed, handed back, cancelled."""
    await life.put(payload=LONG)
    await life.put(12, payload=LONG)
    await life.put(delay="10s")
    done, failing, tired, unlucky, unwanted, stopped = await life.claim(6)
    held = [(one.run_id, one.fence) for one in (done, failing, tired)]
    await life.do(lambda: life.store.extend(WORKER, held, LEASE_MICROS))
    await life.tell(done, Outcome.SUCCEEDED, result=msgspec.json.encode(LONG).decode())
    await life.tell(failing, Outcome.FAILED, retry_in=5_000_000)
    await life.tell(tired, Outcome.SNOOZED, retry_in=8_000_000)
    await life.tell(unlucky, Outcome.FAILED)
    await life.tell(unwanted, Outcome.HANDED_BACK, began=False)
    await life.cancel(stopped.run_id)
    await life.tell(stopped, Outcome.CANCELLED)
    await life.cancel((await life.put())[0])
    life.clock.advance(11 * SECOND)
    await life.do(lambda: life.store.promote(100))
    for again in await life.claim(3):
        await life.tell(again, Outcome.SUCCEEDED)


async def _keys(life: Life) -> None:
    key = f"key-{life.new_id()}"
    first = await life.put(key=key)
    assert await life.put(key=key) == first, "the same work"
    try:
        await life.put(key=key, unique={"on_conflict": "reject"})
    except DuplicateRun:
        return
    raise AssertionError("the same work, twice")


async def _limits(life: Life) -> None:
    await life.put(3, LIMITED, payload={"key": "a"})
    await life.put(1, LIMITED, payload={"key": "b"})
    first, *_ = await life.claim_limited()
    await life.tell(first, Outcome.SUCCEEDED)
    second, *_ = await life.claim_limited()
    await life.tell(second, Outcome.FAILED, retry_in=1_000_000)


async def _lost(life: Life) -> None:
    """A worker dies; what it says later is refused."""
    held = await life.claim(2)
    life.clock.advance(LEASE + SECOND)
    await life.do(lambda: life.store.reap(100))
    await life.do(life.store.tidy)
    late = report_of(held[0], Outcome.SUCCEEDED)
    assert (await life.do(lambda: life.store.report([late]))).refused == [late]


async def _make_schedule(life: Life) -> None:
    definition = define(WORK, every("1m"), {"catch_up": CATCH_UP}, name="s", now=life.clock.micros())
    await life.do(lambda: life.store.schedules.create("s", definition, "me"))


async def _schedule(life: Life) -> None:
    await _make_schedule(life)
    await life.plan(MINUTE)
    await life.plan(9 * MINUTE)
    await life.do(lambda: life.store.schedules.pause("s", "a holiday", "me", None))
    await life.plan(3 * MINUTE)
    await life.do(lambda: life.store.schedules.resume("s", "latest", "me"))
    await life.plan(MINUTE)
    slower = define(WORK, every("2m"), {"overlap": "allow"}, name="s", now=life.clock.micros())
    await life.do(lambda: life.store.schedules.update("s", slower, Change(note="slower")))
    await life.plan(5 * MINUTE)
    await life.do(lambda: life.store.schedules.trigger("s", None, force=True))
    now = life.clock.micros()
    await life.do(lambda: life.store.ledger.backfill("s", BackfillOrder(from_at=now - HOUR, to_at=now, concurrency=8)))
    for planned in await life.claim(4):
        await life.tell(planned, Outcome.SUCCEEDED)


async def _pauses(life: Life) -> None:
    await life.do(lambda: life.store.pause_queue("default", None, "me"))
    await life.put()
    await life.do(lambda: life.store.resume_queue("default"))
    await life.do(lambda: life.store.pause_job("work", None, "me"))
    await life.plan(3 * MINUTE)
    await life.do(lambda: life.store.resume_job("work", "all", "me"))


async def _at_once(life: Life) -> None:
    """Many callers: a group of them shares one commit."""
    for _turn in range(3):
        await asyncio.gather(*[life.put(payload=LONG) for _ in range(20)])
        held = await life.claim(20)
        await asyncio.gather(*[life.tell(one, Outcome.SUCCEEDED) for one in held])


async def _prune(life: Life) -> None:
    life.clock.advance(5 * MINUTE)
    await life.do(lambda: life.store.prune(lambda _: SHORT_RETENTION))
