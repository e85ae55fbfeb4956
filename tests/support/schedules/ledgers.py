"""Ledgers of random cases: as a simulation foretells them, and as real planning and scripted workers leave them."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rota.core.jobs.retry import RetryPolicy, rest_before_retry, retry_policy_in
from rota.core.limits.limits import Gate
from rota.core.limits.turns import Shut
from rota.core.planning.assumptions import Assumptions, Attempt, Simulation
from rota.core.planning.simulate import simulate
from rota.core.planning.tick import ScheduleState
from rota.core.runs.admission import Hold
from rota.core.runs.claim import SUSPECTS, Claim, OrderedRequest, QueueRequest
from rota.core.schedules.schedule import Schedule, ScheduleDefinition
from rota.core.states import Outcome
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.durations import in_micros, parse_duration
from rota.values.instants import micros_at
from rota.values.scope import Scope
from tests.support.clock import ManualClock
from tests.support.runs.runs import LEASE_MICROS, WORKER, report_of
from tests.support.schedules.random_policies import Behaviour, RandomCase
from tests.support.schedules.schedules import definition_of, get_schedule, plan

SECOND = 1_000_000
_SLOTS = 100
"""Of the worker, for each case: more than there are runs."""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|#\d+")
_FATES = {"succeeded": "run", "timed_out": "failed", None: "run"}


@dataclass(frozen=True, order=True)
class Line:
    """Fate of a plan time, or of a range of them; instants in seconds from the start."""

    plan_time: float
    scope: str
    fate: str
    began: float | None = None
    ended: float | None = None
    attempt: int | None = None
    reason: str | None = None
    count: int = 1


Ledger = list[Line]


async def make_case(store: Store, case: RandomCase) -> Schedule:
    await store.save_jobs([case.job])
    if case.quota is not None:
        await store.quotas.update(case.options["scopes"][0][0], "", case.quota, "test")
    definition = await definition_of(store, case.trigger, case.job, case.name, **case.options)
    await store.schedules.create(case.name, definition, "test")
    return await get_schedule(store, case.name)


class Scripted(Assumptions, frozen=True, kw_only=True):
    """Assumptions of a case's behaviour."""

    behaviour: Behaviour
    start: int

    def lasts(self, attempt: Attempt) -> int:
        return self.behaviour.lasts(*self._of(attempt)) * SECOND

    def fails(self, attempt: Attempt) -> bool:
        return self.behaviour.fails(*self._of(attempt))

    def _of(self, attempt: Attempt) -> tuple[int, str, int]:
        assert attempt.plan_time is not None
        return (attempt.plan_time - self.start) // SECOND, attempt.scope.id, attempt.attempt


def retry_of(case: RandomCase, definition: ScheduleDefinition) -> RetryPolicy:
    return retry_policy_in(definition.options, case.job.retry)


def foretold(case: RandomCase, schedule: Schedule, start: int, until: int, away: tuple[int, int]) -> Ledger:
    """Return the ledger of a simulation that begins when the schedule is made."""
    assert schedule.next_plan is not None
    first = micros_at(schedule.next_plan)
    standing = ScheduleState(schedule.id, schedule.name, schedule.definition, start, first)
    quotas = {} if case.quota is None else {scope: case.quota.gates(scope) for scope in schedule.definition.lanes}
    end = start + until * SECOND
    assumed = assuming(case, start, away, quotas)
    return lines_of(simulate(standing, retry_of(case, schedule.definition), start, end, assumed), start)


async def foretold_from_now(
    store: Store, case: RandomCase, definition: ScheduleDefinition, start: int, until: int, away: tuple[int, int]
) -> tuple[float, Ledger]:
    """Return the ledger of a simulation that begins now, and up to where everything was decided before."""
    present = (await store.planning.present({case.name: (definition, case.job)}))[case.name]
    assumed = assuming(case, start, away, present.quotas)
    found = simulate(
        present.state,
        retry_of(case, definition),
        present.now,
        start + until * SECOND,
        assumed,
        beginning=present.beginning,
    )
    return _second(present.state.cursor, start), lines_of(found, start)


def assuming(case: RandomCase, start: int, away: tuple[int, int], quotas: Mapping[Scope, tuple[Gate, ...]]) -> Scripted:
    return Scripted(
        outages=((start + away[0] * SECOND, start + away[1] * SECOND),),
        job=case.job,
        quotas=quotas,
        timeout=None if timeout_of(case) is None else timedelta(seconds=timeout_of(case) or 0),
        behaviour=case.behaviour,
        start=start,
    )


def lines_of(found: Simulation, start: int) -> Ledger:
    lines = []
    for event in found.events:
        if event.kind == "paused":
            lines.append(Line(_second(event.plan_time, start), "", "paused", reason=event.reason))
            continue
        fate = "failed" if event.failed else event.kind
        ended = None if event.finished_at is None else _second(event.finished_at, start)
        began = None if event.started_at is None else _second(event.started_at, start)
        scope = "" if event.scope is None else event.scope.id
        at = _second(event.plan_time, start)
        lines.append(_line(at, scope, fate, began, ended, event.attempt, event.reason, event.count))
    return sorted(lines, key=_order)


def _second(at: int, start: int) -> float:
    return (at - start) / SECOND


def _line(
    at: float,
    scope: str,
    fate: str,
    began: float | None,
    ended: float | None,
    attempt: int,
    reason: str | None,
    count: int,
) -> Line:
    over = fate == "cancelled" or (fate in ("run", "failed") and ended is not None)
    said = None if reason is None or fate in ("run", "failed") else _ID.sub("#", reason)
    ends = None if fate in ("skipped", "missed", "covered") else ended
    return Line(at, scope, fate, began, ends, attempt if over else None, said, count)


def _order(line: Line) -> tuple[float, str, str]:
    return line.plan_time, line.scope, line.fate


Pause = Callable[[], Awaitable[None]]


async def live_through(
    store: Store,
    clock: ManualClock,
    cases: Collection[RandomCase],
    until: int,
    away: tuple[int, int],
    at: Mapping[int, Pause] | None = None,
) -> dict[str, Ledger]:
    """Let planning and workers do what the cases say, at every second and whenever something is due.

    At each instant, in this order: attempts end; runs begin that waited for an end; plan times are decided, oldest
    first; runs are told to stop, and stop; runs begin that are due. `at` has what else is done at the end of a second.
    """
    start = clock.micros()
    workers = Workers(store, clock, cases, start)
    while (elapsed := clock.micros() - start) <= until * SECOND:
        await workers.end()
        await workers.begin()
        if not away[0] * SECOND <= elapsed < away[1] * SECOND:
            await plan(store, 500)
            await workers.stop()
        await store.promote(500)
        await workers.begin()
        if at is not None and elapsed % SECOND == 0 and elapsed // SECOND in at:
            await at[elapsed // SECOND]()
        upcoming = (await store.promote(500)).next_in
        rests = [SECOND - elapsed % SECOND, workers.next_in, upcoming or SECOND]
        clock.advance(timedelta(microseconds=max(1, min(rests))))
    return await ledgers(store, workers.began, start)


class Workers:
    """As many workers as there is work for, which behave as their cases say."""

    def __init__(self, store: Store, clock: ManualClock, cases: Collection[RandomCase], start: int) -> None:
        self.began: dict[str, float] = {}
        self._store, self._clock, self._start = store, clock, start
        self._cases = {case.name: case for case in cases}
        self._held: dict[str, tuple[Claim, Outcome, int]] = {}
        self._facts: dict[str, tuple[str, int, str]] = {}

    @property
    def next_in(self) -> int:
        """Return how long it takes to the next end of an attempt, in microseconds."""
        now = self._clock.micros()
        return min((until - now for _, _, until in self._held.values()), default=SECOND)

    async def end(self) -> None:
        over = [(held, outcome) for held, outcome, until in self._held.values() if until <= self._clock.micros()]
        await self._report(over)

    async def stop(self) -> None:
        async def body(tx: Tx) -> list[str]:
            return [
                str(id) for (id,) in await tx.fetch_sql("select run_id from rota_lease where cancel_at is not null")
            ]

        asked = await self._store.database.read(body)
        await self._report([(self._held[id][0], Outcome.CANCELLED) for id in asked])

    async def begin(self) -> None:
        now = self._clock.micros()
        while claims := await self._claim():
            await self._learn(claims)
            for held in claims:
                self.began.setdefault(held.run_id, _second(now, self._start))
                job, plan_time, scope = self._facts[held.run_id]
                case = self._cases[job]
                lasts = case.behaviour.lasts(plan_time, scope, held.attempt)
                failed = case.behaviour.fails(plan_time, scope, held.attempt)
                outcome = Outcome.FAILED if failed else Outcome.SUCCEEDED
                limit = timeout_of(case)
                if limit is not None and lasts > limit:
                    lasts, outcome = limit, Outcome.TIMED_OUT
                self._held[held.run_id] = held, outcome, now + lasts * SECOND

    async def _claim(self) -> list[Claim]:
        """Claim as a worker does. Each case has a queue of its own; those without anything to claim are not asked."""

        async def body(tx: Tx) -> list[str]:
            found = await tx.fetch_sql(
                "select distinct w.queue from rota_ready w left join rota_limit l on l.key = w.limit_key"
                f" where w.hold = {Hold.OPEN:d} or w.hold = {Hold.LIMITED:d} and l.shut = {Shut.OPEN:d}"
            )
            return sorted(queue for (queue,) in found)

        queues = await self._store.database.read(body)
        if not queues:
            return []
        asks = tuple(QueueRequest(queue, _SLOTS) for queue in queues)
        known = dict.fromkeys(self._cases, 1)
        request = OrderedRequest(WORKER.id, WORKER.name, asks, known, LEASE_MICROS, _SLOTS * len(asks), SUSPECTS)
        found = await self._store.claim_in_order(request)
        return [*found.plain, *found.others]

    async def _learn(self, claims: Iterable[Claim]) -> None:
        """Read the plan times of these runs."""
        if all(held.run_id in self._facts for held in claims):
            return

        async def body(tx: Tx) -> Any:
            return await tx.fetch_sql("select id, job, plan_time, scope_id from rota_run")

        for id, job, plan_time, scope in await self._store.database.read(body):
            self._facts[str(id)] = job, (plan_time - self._start) // SECOND, scope

    async def _report(self, ends: Iterable[tuple[Claim, Outcome]]) -> None:
        reports = [report_of(held, outcome, retry_in=self._retry_in(held, outcome)) for held, outcome in ends]
        for report in reports:
            del self._held[report.run_id]
        assert not reports or not (await self._store.report(reports)).refused

    def _retry_in(self, held: Claim, outcome: Outcome) -> int | None:
        if outcome not in (Outcome.FAILED, Outcome.TIMED_OUT):
            return None
        policy = self._cases[self._facts[held.run_id][0]].job.retry
        rest = rest_before_retry(policy, held.max_attempts, held.attempt, 0.0)
        return None if rest is None else in_micros(rest)


def timeout_of(case: RandomCase) -> int | None:
    """Return the timeout of its attempts, in seconds."""
    own = case.options.get("timeout")
    timeout = case.job.timeout if own is None else parse_duration(own)
    return None if timeout is None else timeout // timedelta(seconds=1)


async def ledgers(store: Store, began: Mapping[str, float], start: int) -> dict[str, Ledger]:
    """Return what became of the plan times of each schedule."""

    async def body(tx: Tx) -> tuple[Any, Any, Any]:
        runs = await tx.fetch_sql(
            "select r.id, s.name, r.plan_time, r.scope_id, r.state, r.finished_at, r.attempt, r.reason, r.covers_from,"
            " r.missed_count from rota_run r join rota_schedule s on s.id = r.schedule_id"
        )
        ranges = await tx.fetch_sql(
            "select s.name, g.from_at, g.count, g.reason from rota_range g join rota_schedule s on s.id = g.schedule_id"
        )
        paused = await tx.fetch_sql(
            "select s.name, r.valid_from, r.note from rota_revision r join rota_schedule s on s.id = r.schedule_id"
            " where r.note like 'paused: %'"
        )
        return runs, ranges, paused

    runs, ranges, paused = await store.database.read(body)
    found: dict[str, Ledger] = {}
    for id, name, plan_time, scope, state, finished_at, attempt, reason, covers_from, missed in runs:
        lines = found.setdefault(name, [])
        fate = _FATES.get(state, state)
        ended = None if finished_at is None else _second(finished_at, start)
        at = _second(plan_time, start)
        lines.append(_line(at, scope, fate, began.get(str(id)), ended, attempt, reason, 1))
        if covers_from is not None:
            lines.append(Line(_second(covers_from, start), scope, "covered", count=missed))
    for name, from_at, count, reason in ranges:
        found.setdefault(name, []).append(Line(_second(from_at, start), "", "missed", reason=reason, count=count))
    for name, at, note in paused:
        reason = str(note).removeprefix("paused: ")
        found.setdefault(name, []).append(Line(_second(at, start), "", "paused", reason=reason))
    return {name: sorted(lines, key=_order) for name, lines in found.items()}


def differences(cases: Iterable[RandomCase], wanted: Mapping[str, Ledger], got: Mapping[str, Ledger]) -> dict[str, str]:
    """Describe each case whose two ledgers differ."""
    differing = {}
    for case in cases:
        foreseen, left = wanted[case.name], got.get(case.name, [])
        if foreseen != left:
            lines = [f"{case.name}: {case.options} {_shown(case)}"]
            lines += [f"  simulated {line}" for line in foreseen if line not in left]
            lines += [f"  planned   {line}" for line in left if line not in foreseen]
            differing[case.name] = "\n".join(lines)
    return differing


def _shown(case: RandomCase) -> str:
    job = case.job
    return f"{job.limits} {job.unique} {job.retry} timeout {job.timeout} {job.cancel.supported} quota {case.quota}"
