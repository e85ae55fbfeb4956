"""What a play leaves behind, and what becomes of it when everything comes to rest.

An end is looked at once, however many plays lead to it: no row refers to something that is gone, whoever may be claimed
was told of, and after the sweeps and some honest workers every run is final.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta
from typing import Any

import asyncpg
import msgspec

from rota.core.runs.admission import Hold
from rota.core.runs.outcome import Report
from rota.core.states import Outcome
from rota.store import Store
from rota.store.databases.postgres.postgres import PostgresDatabase
from tests.explorer.scenes.shared import claim_all
from tests.explorer.tables import Content
from tests.simulation.checks.orphans import ALWAYS, ORPHAN, QUESTIONS
from tests.support.clock import ManualClock

_ROUNDS = 15
_WORKERS = ("worker-1", "worker-A", "elsewhere")


def _asked(questions: Mapping[str, str]) -> str:
    return " union all ".join(
        f"(select $q${what}$q$::text, (array_agg(x::text))[1:3] from ({question}) as t(x) having count(*) > 0)"
        for what, question in questions.items()
    )


_AT_ONCE, _IN_THE_END = (
    _asked(ALWAYS),
    _asked({what: question for what, question in QUESTIONS.items() if what not in ALWAYS}),
)
_LIVE = "select id::text from rota_run where state is null"
_THEIRS = "select run_id, fence from rota_lease where worker_id ~ '^worker-[ABC]$' order by run_id"
_SETTLED = """
select 'run', coalesce(r.schedule_id || '/' || r.plan_time || '/' || r.scope_id, r.id::text), r.state,
    (select string_agg(a.outcome, ',' order by a.fence) from rota_attempt a where a.run_id = r.id)
from rota_run r
union all select 'schedule', name, definition, concat_ws('/', enabled, paused_at, deleted_at) from rota_schedule
union all select 'job', name, version::text, dropped_at::text from rota_job
union all select 'pause', kind, name, null from rota_pause
"""
_LEFT = """
select 'rota_' || t, n from (
    select 'wait' as t, count(*) as n from rota_wait union all select 'ready', count(*) from rota_ready
    union all select 'lease', count(*) from rota_lease union all select 'outside', count(*) from rota_outside
    union all select 'conduct', count(*) from rota_conduct union all select 'gate', count(*) from rota_gate) as x
where n > 0
"""

Wrong = tuple[str, str]


class Looked(msgspec.Struct, frozen=True):
    """`wrong`: what is wrong with an end; `became`: its runs, schedules and jobs once nothing moves any more."""

    wrong: tuple[Wrong, ...]
    became: frozenset[tuple[str | None, ...]]


class Rest:
    """Looks at ends in the database where a play has just left them."""

    def __init__(
        self, url: str, clock: ManualClock, monitor: asyncpg.Connection[Any], known: Mapping[str, int], before: Content
    ) -> None:
        self._database = PostgresDatabase(url, clock, deadline=timedelta(minutes=1), size=1)
        self._clock = clock
        self._monitor = monitor
        self._known = known
        self._before = before
        self._looked: dict[object, Looked] = {}

    async def close(self) -> None:
        await self._database.close()

    async def look(self, key: object) -> Looked:
        """Look at the rows that are there now, unless the same were looked at before; afterwards, others are there."""
        looked = self._looked.get(key)
        if looked is None:
            wrong = [one async for one in self._orphans(_AT_ONCE)]
            wrong += [one async for one in self._run_out()]
            wrong += [one async for one in self._orphans(_IN_THE_END)]
            rows = await self._monitor.fetch(_SETTLED)
            looked = self._looked[key] = Looked(tuple(wrong), frozenset(tuple(row) for row in rows))
        return looked

    async def _orphans(self, asked: str) -> AsyncIterator[Wrong]:
        for what, rows in await self._monitor.fetch(asked):
            yield ORPHAN, f"{what}: {', '.join(rows)}"

    def unheard(self, content: Content, woken: frozenset[str | None]) -> Iterator[Wrong]:
        """Tell runs that became claimable and whose queue nobody was told of."""
        for run_id, queue in _claimable(content) - _claimable(self._before):
            if queue not in woken and None not in woken:
                yield "lost wake-up", f"run {run_id[-6:]} may be claimed, and queue {queue} was not told"

    async def _run_out(self) -> AsyncIterator[Wrong]:
        """Let time pass, sweep, and work, until nothing is live."""
        numbers = iter(range(1, 1_000_000))  # the same each time
        store = Store(self._database, lambda: f"01991111-0000-7000-8000-{next(numbers):012x}")
        # What people stopped may go on: this is about what was forgotten.
        await self._monitor.execute("delete from rota_pause; update rota_limit set shut = 0 where max > 0")
        # What planning passed over, because somebody had it.
        await store.planning.wake_followers(100)
        await store.planning.plan(100, {})
        # Whoever claimed in the play works honestly.
        for run_id, fence in await self._monitor.fetch(_THEIRS):
            await store.report([Report(str(run_id), fence, Outcome.SUCCEEDED, limited=True)])
        for _ in range(_ROUNDS):
            await store.reap(100)
            await store.promote(100)
            await store.tidy()
            await store.conducts.step(absent=True)
            for worker in _WORKERS:
                claims = await claim_all(store, worker, self._known)
                await store.report(
                    [Report(one.run_id, one.fence, Outcome.SUCCEEDED, limited=one.limited) for one in claims]
                )
            if not await self._monitor.fetch(_LIVE):
                break
            self._clock.advance(timedelta(hours=2))
        else:
            live = [id for (id,) in await self._monitor.fetch(_LIVE)]
            yield "stuck", f"not final after {_ROUNDS} rounds: {', '.join(id[-6:] for id in live)}"
            return
        for table, count in await self._monitor.fetch(_LEFT):
            yield "left", f"{count} rows of {table}, and nothing is live"


def _claimable(content: Content) -> set[tuple[str, str]]:
    rows = (json.loads(row) for row in content.get("rota_ready", ()))
    open_limits = {limit["key"] for limit in map(json.loads, content.get("rota_limit", ())) if limit["shut"] == 0}
    return {
        (row["run_id"], row["queue"])
        for row in rows
        if row["hold"] == Hold.OPEN
        or row["hold"] == Hold.RESTRICTED
        or (row["hold"] == Hold.LIMITED and row["limit_key"] in open_limits)
    }


def tally(found: Counter[str]) -> str:
    return ", ".join(f"{count} × {what}" for what, count in sorted(found.items()))
