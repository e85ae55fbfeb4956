"""The database when all is over: what it holds, and the checks of the simulation that need nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from datetime import timedelta
from typing import Any, Self, TypeVar

from rota import Client, Config
from rota.store import open_store
from rota.store.databases.database import Row
from rota.store.limits.strays import look_astray
from tests.chaos.evidence import Attempt, Effect, Step
from tests.chaos.jobs import EFFECTS, app
from tests.simulation.checks.audit_trail import in_order
from tests.simulation.checks.error_groups import faults_are_found
from tests.simulation.checks.final_state import all_is_final
from tests.simulation.checks.runs import in_one_place
from tests.simulation.checks.schedules import plan_times_are_answered
from tests.simulation.script.entries import Script
from tests.simulation.world.observer import Finding, Observer

T = TypeVar("T")

_DEADLINE = timedelta(seconds=30)
_MOST_TRAILS = 3_000
_ATTEMPTS = "select run_id, fence, no, worker_id, claimed_at, ended_at, outcome from rota_attempt"
_SUCCESSES = """
select id, fence, attempt, worker_id, claimed_at, finished_at, state from rota_run where state = 'succeeded'
"""
_STEPS = "select run_id, id, fence, state, result from rota_step"
_EFFECTS = f"select run_id, fence, finishing from {EFFECTS}"
_OPEN = "select count(*) from rota_run where state is null"
_NEXT = """
select name from rota_schedule_now where enabled = 1 and paused_at is null and deleted_at is null
    and next_at < {before}
"""
_LEFT = ("rota_ready", "rota_lease", "rota_outside", "rota_conduct", "rota_wait", "rota_gate")


class Rest:
    """A client of its own to the database, driven from code that is no coroutine."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._url = url

    def __enter__(self) -> Self:
        self._runner.__enter__()
        config = Config(database_url=self._url, deadline=_DEADLINE)
        store = self.wait(open_store(self._url, deadline=_DEADLINE))
        self.client = Client(store, app.registry, config)
        self.observer = Observer(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(self.client.close())
        self._runner.close()

    def wait(self, act: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(act)

    @property
    def backend(self) -> Self:
        return self

    @property
    def script(self) -> Script:
        """Nothing that was drawn: of schedules, their revisions say all."""
        return Script(seed=0, engines=0, offsets=[], distance=0.0, start=0, span=0.0, entries=[])

    def look(self, sql: str) -> Sequence[Row]:
        async def body(tx: Any) -> Sequence[Row]:
            rows: Sequence[Row] = await tx.fetch_sql(sql)
            return rows

        return self.wait(self.client.store.database.read(body))

    def unfinished(self) -> int:
        ((count,),) = self.look(_OPEN)
        return int(count)

    def overdue(self, seconds: float) -> list[str]:
        """Schedules that nobody has planned for so long, though they were to be."""
        before = self.wait(self.client.store.now()) - int(seconds * 1e6)
        return [name for (name,) in self.look(_NEXT.format(before=before))]

    def why_not(self) -> list[tuple[str, str]]:
        """The runs that are due and not final, with what rota has to say about that."""
        list(self.observer.changes())
        now = self.wait(self.client.store.now())
        found = []
        for id, seen in self.observer.live.items():
            if seen.place is None or seen.place.run_at <= now:
                told = self.wait(self.client.explain(id))
                found.append((id, f"{seen}: {' '.join(told.words)}"))
        return found

    def attempts(self) -> list[Attempt]:
        rows = [*self.look(_ATTEMPTS), *self.look(_SUCCESSES)]
        return sorted(Attempt(str(id), *rest) for id, *rest in rows)

    def steps(self) -> list[Step]:
        return [Step(str(id), *rest) for id, *rest in self.look(_STEPS)]

    def effects(self) -> list[Effect]:
        return [Effect(*row) for row in self.look(_EFFECTS)]

    def findings(self) -> Iterator[Finding]:
        """P1, P3, P4, P12, P17."""
        list(self.observer.changes())
        yield from all_is_final(self)
        for seen in self.observer.runs.values():
            yield from in_one_place(seen)
        yield from faults_are_found(self)
        yield from plan_times_are_answered(self)
        yield from self._ledgers()
        yield from self._nothing_left()
        yield from self._trails()

    def _ledgers(self) -> Iterator[Finding]:
        ledger = self.client.store.ledger
        for (name,) in self.look("select name from rota_schedule"):
            for finding in self.wait(ledger.verify(name)).findings:
                yield "P1", f"{name}: {finding.words}"

    def _nothing_left(self) -> Iterator[Finding]:
        for table in _LEFT:
            ((count,),) = self.look(f"select count(*) from {table}")
            if count and not self.unfinished():
                yield "P12", f"all runs are final, and {count} rows are left in {table}"
        found = self.wait(self.client.store.database.read(look_astray))
        if found.ended or found.again or found.forgotten or found.awaited or found.idle:
            yield "P12", f"left astray: {found}"

    def _trails(self) -> Iterator[Finding]:
        """Of those first that had the most to go through."""
        ids = sorted(self.observer.runs, key=lambda id: -self.observer.runs[id].fence)
        for id in ids[:_MOST_TRAILS]:
            trail = self.wait(self.client.store.ledger.events_of_run(id))
            for problem in list(in_order(trail, is_steady=True))[:1]:
                yield "P17", f"{problem}: {self.observer.runs[id]}"
