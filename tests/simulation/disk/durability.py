"""What a store has said and what it holds: told after each commit, and compared with what a power cut left of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import pytest

from rota.core.states import RunState
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.store.databases.sqlite import sqlite
from rota.store.databases.sqlite.sqlite import SqliteTx
from tests.simulation.disk.workload import KNOWN, Told
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, claim, claim_limited, finish_all
from tests.support.schedules.schedules import plan

T = TypeVar("T")

State = dict[str, list[Row]]
"""Every row of every table, and the schema."""

EMPTY: State = {"sqlite_master": []}

# Each run is ready, leased or final, and nothing is ready or leased that is no run.
MISPLACED = """
select r.id from rota_run r left join rota_ready w on w.run_id = r.id left join rota_lease l on l.run_id = r.id
where (r.state is not null) + (w.run_id is not null) + (l.run_id is not null) <> 1
union all select run_id from rota_ready where run_id not in (select id from rota_run)
union all select run_id from rota_lease where run_id not in (select id from rota_run)
"""
FENCES = "select id, state, fence from rota_run_now"
ENDED_WELL = {RunState.SUCCEEDED, RunState.CANCELLED, RunState.SKIPPED}
LIVE = "select count(*) from rota_run where state is null"


class Commit(msgspec.Struct, frozen=True):
    """A group of operations that was committed: the moment of the first answer, what was there then, and the time."""

    answered: int
    state: State
    now: int


class History:
    """The commits of all stores that are opened while it is kept, in order; `log` is the disk's."""

    def __init__(self, log: Sequence[object], clock: ManualClock) -> None:
        self.commits = [Commit(0, EMPTY, clock.micros())]
        self._log = log
        self._clock = clock

    @contextmanager
    def kept(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        write_group = vars(sqlite)["write_group"]  # the real one, or a fault that a test planted

        def noted(tx: SqliteTx, jobs: list[Any]) -> None:
            answers: list[int] = []

            def settled(future: Any) -> None:
                """By the writer's thread, in the very moment."""
                if future.exception() is None:
                    answers.append(len(self._log))

            for job in jobs:
                job.future.add_done_callback(settled)
            write_group(tx, jobs)
            answered = min(answers, default=len(self._log))
            self.commits.append(Commit(answered, at_once(state_of_all(tx)), self._clock.micros()))

        with monkeypatch.context() as patch:
            patch.setattr(sqlite, "write_group", noted)
            yield

    def around(self, moment: int) -> list[Commit]:
        """The last one that was answered by then, and the one that was perhaps under way."""
        answered = bisect_right(self.commits, moment, key=lambda commit: commit.answered)
        return self.commits[answered - 1 : answered + 1]

    def known(self, told: Sequence[Told], moment: int) -> list[Told]:
        """What callers knew by then, but for runs that were pruned later on."""
        kept = {row[0] for row in self.commits[-1].state["rota_run"]}
        return [one for one in told if one.moment <= moment and one.run_id in kept]


def at_once(body: Coroutine[Any, Any, T]) -> T:
    """The answer of a coroutine that does not wait: on SQLite no statement does."""
    try:
        body.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("it waited")


async def state_of_all(tx: Tx) -> State:
    schema = await tx.fetch_sql("select type, name, sql from sqlite_master order by name")
    state: State = {"sqlite_master": [tuple(row) for row in schema]}
    for kind, name, _ in schema:
        if kind == "table" and name != "rota_epoch":  # written when the file is opened, in no transaction of a caller
            rows = await tx.fetch_sql(f'select * from "{name}"')
            state[name] = sorted((tuple(row) for row in rows), key=repr)
    return state


async def rows(store: Store, sql: str) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return [tuple(row) for row in await tx.fetch_sql(sql)]

    return await store.database.transact(body)


def lost_or_invented(found: State, expected: Sequence[Commit]) -> str | None:
    """Unless it is what one of the commits left, to the last row: how it differs."""
    if any(found == commit.state for commit in expected):
        return None
    wanted = expected[0].state
    for table in sorted({*found, *wanted}):
        here, there = found.get(table, []), wanted.get(table, [])
        if here != there:
            missing, extra = [row for row in there if row not in here], [row for row in here if row not in there]
            return f"{table}: missing {missing[:3]}, unexpected {extra[:3]}"
    return None


async def check_whole(store: Store, known: Sequence[Told] = ()) -> None:
    """Nothing is damaged, nothing is half there, and what callers were told is true."""
    assert await rows(store, "pragma integrity_check") == [("ok",)]
    assert await rows(store, "pragma foreign_key_check") == []
    assert await rows(store, MISPLACED) == []
    states = {str(id): state for id, state, _ in await rows(store, FENCES)}
    for told in known:
        assert told.run_id in states, f"{told} is lost"
        assert told.state in (None, states[told.run_id]), f"{told} is {states[told.run_id]}"
    for name in await store.schedules.names():
        verified = await store.ledger.verify(name)
        assert verified.ok, [finding.words for finding in verified.findings]


async def live_to_the_end(store: Store, clock: ManualClock) -> int:
    """The dead one's leases expire, everything is done, each run once. Returns how many runs that took."""
    before = {str(id): (str(state), int(fence)) for id, state, fence in await rows(store, FENCES)}
    leases = {str(id): int(fence) for id, fence in await rows(store, "select run_id, fence from rota_lease")}
    await plan(store)
    for name in await store.schedules.names():
        await store.schedules.pause(name, "enough", "test", None)
    await store.resume_queue("default")
    await store.resume_job("work", "skip", "test")
    done = 0
    for _turn in range(50):
        clock.advance(LEASE + SECOND)
        await store.reap(500)
        await store.tidy()
        await store.promote(500)
        held = [*await claim(store, 500, known=KNOWN), *await claim_limited(store, known=KNOWN)]
        await finish_all(store, held)
        done += len(held)
        if await rows(store, LIVE) == [(0,)]:
            break
    await _check_ended_once(store, before, leases)
    return done


async def _check_ended_once(store: Store, before: dict[str, tuple[str, int]], leases: dict[str, int]) -> None:
    """A success is told by the run's own row, so that there cannot be two; other attempts have rows of their own."""
    unsuccessful: dict[str, list[int]] = {}
    for id, fence in await rows(store, "select run_id, fence from rota_attempt"):
        unsuccessful.setdefault(id, []).append(fence)
    for id, state, fence in await rows(store, FENCES):
        old_state, old_fence = before.get(id, (RunState.QUEUED, 0))
        if RunState(old_state).is_final:
            assert (state, fence) == (old_state, old_fence), "final is final"
            continue
        assert state in ENDED_WELL, f"{id} is {state}"
        assert fence > leases.get(id, -1), "whoever held it before the cut has no say any more"
        assert fence >= old_fence, "fences grow"
        if state == RunState.SUCCEEDED:
            assert fence > max(unsuccessful.get(id, [0])), "nothing comes after a success"
