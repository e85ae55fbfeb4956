"""Oracle for the ledger that shares no code with it: plan times by brute force, and the rows for them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from rota.store import Store
from rota.store.databases.database import Row, Tx
from rota.values.scope import GLOBAL, Scope
from tests.simulation.checks.cron_oracle import CronOracle, Walk

SECOND = 1_000_000

_RUNS = """
select plan_time, covers_from, missed_count, created_at, run_at from rota_run
where schedule_id = :id and scope_kind = :kind and scope_id = :name and plan_time is not null and retry_of is null
"""
_RANGES = """
select from_at, to_at, count from rota_range
where schedule_id = :id and (scope_kind = '' or scope_kind = :kind and scope_id = :name)
"""
_REVISIONS = "select no, valid_from, definition, active from rota_revision where schedule_id = :id order by no"


async def rows(store: Store, sql: str, **values: Any) -> list[Row]:
    async def body(tx: Tx) -> list[Row]:
        return [tuple(row) for row in await tx.fetch_sql(sql, **values)]

    return await store.database.read(body)


async def change(store: Store, sql: str, **values: Any) -> None:
    """Change rows by hand, past all of rota's checks."""

    async def body(tx: Tx) -> None:
        await tx.fetch_sql(sql, **values)

    await store.database.transact(body)


def each(step: timedelta, after: int, until: int) -> list[int]:
    """Every multiple of `step` since the epoch in (after, until]."""
    size = step // timedelta(microseconds=1)
    return [at for at in range(after // SECOND * SECOND, until + 1, SECOND) if at > after and at % size == 0]


def fires(expression: str, zone: str, first: datetime, last: datetime) -> list[int]:
    """Return the times of a cron expression between two instants, by walking over every second."""
    walk = Walk(ZoneInfo(zone), int(first.timestamp()), int(last.timestamp()))
    return [at * SECOND for at in CronOracle(expression).fires(walk)]


async def named_by_revisions(store: Store, id: str, until: int) -> list[int]:
    """Return the plan times of each revision of the schedule; their triggers are all `every`."""
    revisions = await rows(store, _REVISIONS, id=id)
    assert [row[0] for row in revisions] == list(range(1, len(revisions) + 1)), "each revision once"
    ends = [row[1] for row in revisions[1:]] + [until]
    assert [row[1] for row in revisions] == sorted(row[1] for row in revisions), "they follow one another"
    named: list[int] = []
    for (_, valid_from, definition, active), end in zip(revisions, ends, strict=True):
        step = msgspec.convert(json.loads(definition)["rule"]["trigger"]["interval"], timedelta)
        named += each(step, valid_from, min(end, until)) if active else []
    return named


async def check_account(
    store: Store,
    id: str,
    named: Collection[int],
    scopes: Iterable[Scope] = (GLOBAL,),
    *,
    delay: timedelta | None = None,
) -> None:
    """Each named instant has exactly one run or record, no other instant has any, and nothing was made early."""
    early = (delay or timedelta(0)) // timedelta(microseconds=1)
    assert len(set(named)) == len(named)
    for scope in scopes:
        answers: Counter[int] = Counter()
        values = {"id": id, "kind": scope.kind, "name": scope.id}
        for plan_time, covers_from, covered, created_at, run_at in await rows(store, _RUNS, **values):
            assert created_at >= plan_time, "never early"
            assert run_at >= plan_time + early, "nor its start"
            answers[plan_time] += 1
            if covered:
                older = [at for at in named if covers_from <= at < plan_time]
                assert len(older) == covered, f"{covered} are said to be covered, {len(older)} were named"
                answers.update(older)
        for from_at, to_at, count in await rows(store, _RANGES, **values):
            within = [at for at in named if from_at <= at <= to_at]
            assert len(within) == count, f"{count} are said to be missed, {len(within)} were named"
            answers.update(within)
        lost = [at for at in named if not answers[at]]
        unnamed = [at for at in answers if at not in set(named)]
        doubled = [at for at, times in answers.items() if times > 1]
        assert (lost, unnamed, doubled) == ([], [], []), scope
