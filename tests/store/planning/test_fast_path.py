"""Ordinary fires take a way of their own, and leave the same behind as all others would."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from rota.core.calendar.triggers import cron, every, once
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.core.limits.quotas import quota_of
from rota.core.planning.tally import Tally
from rota.core.states import Outcome
from rota.errors import RotaError
from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.store.planning import plan as plans
from rota.store.planning.due import plan_due
from rota.store.planning.fast_path import ordinary_fires
from rota.values.instants import instant
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import WORK, claim, finish_all, tell
from tests.support.schedules.schedules import MINUTE, get_schedule, make_schedule, minutes, noon, plan, runs_of, told

LEFT = {
    "runs": """
        select s.name, r.job, r.job_version, r.queue, r.priority, r.scope_kind, r.scope_id, r.payload, r.tags,
            r.metadata, r.overrides, r.max_attempts, r.on_lost, r.run_at, r.plan_time, r.covers_from, r.missed_count,
            r.state, r.attempt, r.fence, r.finished_at, w.queue, w.rank, w.run_at, w.hold, w.solo, w.attempt, w.fence,
            w.job, w.job_version, w.limit_key, w.need
        from rota_run r join rota_schedule s on s.id = r.schedule_id left join rota_ready w on w.run_id = r.id""",
    "cursors": """
        select s.name, c.cursor_at, c.next_plan, c.next_at, c.open_plan, c.fired, c.tzdata, c.awaits, c.trouble,
            s.revision
        from rota_cursor c join rota_schedule s on s.cursor_no = c.no""",
    "lanes": """
        select s.name, n.scope_id, n.failed, n.failures, n.skips
        from rota_lane n join rota_schedule s on s.id = n.schedule_id""",
    "lane_runs": """
        select s.name, m.scope_id from rota_lane_run m join rota_schedule s on s.id = m.schedule_id""",
    "ranges": """
        select s.name, g.from_at, g.to_at, g.reason, g.count
        from rota_range g join rota_schedule s on s.id = g.schedule_id""",
}
ORDINARY: dict[str, dict[str, Any]] = {
    "plain": {},
    "own": {"payload": {"n": 1}},
    "named": {"payload": {"n": "{schedule} {plan_time}"}},
    "scoped": {"scopes": [Scope("account", "a")]},
    "late": {"delay": "3s"},
    "spread": {"jitter": "20s"},
    "hashed": {"trigger": cron("H * * * * *")},
    "last": {"trigger": once(instant(noon().micros() + MINUTE))},
    "urgent": {"priority": 5, "tags": ["x"]},
    "allowing": {"overlap": "allow"},
    "waiting": {"overlap": "queue_all"},
}
OTHERS: dict[str, dict[str, Any]] = {
    "many": {"scopes": [Scope("account", "a"), Scope("account", "b")]},
    "ending": {"max_runs": 1},
    "limited": {"max_concurrency": 1},
    "under quota": {"scopes": [Scope("account", "held")]},
    "retrying": {"failure": "retry"},
    "punctual": {"catch_up": "none"},
    "each": {"catch_up": "all"},
    "of a limited job": {"job": "full"},
    "of a keyed job": {"job": "keyed"},
    "of a disabled job": {"job": "off"},
    "of solitary work": {"job": "alone"},
}
JOBS = {
    "work": WORK,
    "full": msgspec.structs.replace(WORK, name="full", limits=(Limit(max=1),)),
    "keyed": msgspec.structs.replace(WORK, name="keyed", unique=Unique()),
    "off": msgspec.structs.replace(WORK, name="off", enabled=False),
    "alone": msgspec.structs.replace(WORK, name="alone", on_lost="fail"),
}


class Undone(RotaError):
    """Takes back what a transaction did."""


@pytest.fixture
def clock() -> ManualClock:
    return noon()


async def _make_all(store: Store) -> None:
    await store.quotas.update("account", "held", quota_of(max_concurrency=1), "ann")
    for name, options in (ORDINARY | OTHERS).items():
        given = {"trigger": every("1m"), **options}
        await make_schedule(store, name, given.pop("trigger"), job=JOBS[given.pop("job", "work")], **given)


async def _left(tx: Tx) -> dict[str, list[str]]:
    return {what: sorted(map(_told, await tx.fetch_sql(sql))) for what, sql in LEFT.items()}


def _told(row: Row) -> str:
    return repr(tuple(row))


async def _tried(store: Store) -> tuple[dict[str, list[str]], Tally]:
    """What planning would leave behind."""
    done: list[tuple[dict[str, list[str]], Tally]] = []

    async def body(tx: Tx) -> None:
        planned = await plan_due(tx, 500, {}, store.new_id)
        done.append((await _left(tx), planned.tally))
        raise Undone("nothing was wrong")

    with pytest.raises(Undone):
        await store.database.transact(body)
    left, tally = done[-1]
    return left, msgspec.structs.replace(tally, lateness=sorted(tally.lateness))


def _none_is_ordinary(known: Sequence[Any], *_: object) -> tuple[list[Any], list[Any]]:
    return [], list(known)


async def _is_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    short = await _tried(store)
    with monkeypatch.context() as patched:
        patched.setattr(plans, "ordinary_fires", _none_is_ordinary)
        assert await _tried(store) == short


async def test_both_ways_leave_the_same_behind(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _make_all(store)
    for passed in (1, 1, 1, 3, 1):
        clock.advance(minutes(passed))
        await _is_the_same(store, monkeypatch)
        assert await plan(store)
        for place, claimed in enumerate(await claim(store, 20)):
            if place % 3 < 2:
                await tell(store, claimed, Outcome.SUCCEEDED if place % 3 else Outcome.FAILED)


async def test_only_ordinary_ones_take_the_short_way(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _make_all(store)
    taken: set[str] = set()

    def noting(*given: Any) -> Any:
        fires, others = ordinary_fires(*given)
        taken.update(one.row.name for one in fires)
        return fires, others

    monkeypatch.setattr(plans, "ordinary_fires", noting)
    clock.advance(minutes(1))
    await plan(store)
    assert taken >= set(ORDINARY) - {"late", "hashed"}
    assert taken <= {*ORDINARY, "of solitary work"}


async def test_a_plan_time_that_has_its_run_gets_no_other(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restore of the cursors alone."""
    for name in ("s", "t"):
        await make_schedule(store, name)
    clock.advance(minutes(1))
    await plan(store)
    await finish_all(store, await claim(store))
    planned = await get_schedule(store)
    back = (
        "update rota_cursor set next_plan = next_plan - :back, next_at = next_at - :back, cursor_at = cursor_at - :back"
    )
    await store.database.transact(lambda tx: tx.fetch_sql(back, back=MINUTE))
    await _is_the_same(store, monkeypatch)
    tally = (await store.planning.plan(100, {})).tally
    assert (tally.ran, sum(tally.skipped.values()), {kind for _, kind in tally.skipped}) == ({}, 2, {"overlap"})
    assert (await get_schedule(store)).cursor_at == planned.cursor_at
    assert told(await runs_of(store)) == [("12:01:00", "succeeded")]
    assert await claim(store) == []


async def test_a_batch_leaves_little_to_the_collector_of_garbage(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What outlives a few of its rounds counts towards one through everything there is."""
    many, tracked = 60, list[int]()
    for number in range(many):
        await make_schedule(sqlite_store, f"s{number}", payload={"number": number})

    def counted(*given: Any) -> Any:
        fires, others = ordinary_fires(*given)
        gc.collect()  # a tuple of plain values is of no interest to it any more, once it was seen
        tracked.append(sum(type(one) is tuple for one in gc.get_objects()))
        return fires, others

    monkeypatch.setattr(plans, "ordinary_fires", counted)
    for limit in (1, many - 1) * 2:  # the second time, all that is remembered of schedules is there
        clock.advance(minutes(0 if limit > 1 else 1))
        assert (await sqlite_store.planning.plan(limit, {})).runs == limit
    assert tracked[3] - tracked[2] < many // 4
