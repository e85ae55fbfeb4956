"""Simulation of a schedule over a span of virtual time, planned by the same function as real runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import heappop, heappush

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.retry import RetryPolicy, TryAgain, after_failure
from rota.core.planning.overlap_and_failure import Create, Lane
from rota.core.planning.simulated_limits import SimulatedLimits
from rota.core.planning.tick import Planned, ScheduleState, following_plan, tick
from rota.errors import Invalid
from rota.values.durations import in_micros
from rota.values.scope import Scope

KINDS = ("run", "failed", "skipped", "missed", "covered", "cancelled", "paused")

# Order of events at one instant, as in the database: an end frees the lane for the plan time that is due, whose run
# may begin at once.
_END, _PLAN, _BEGIN, _OPEN = range(4)


class Assumptions(msgspec.Struct, frozen=True, kw_only=True):
    """Assumptions of a simulation; instants are microseconds, runs are counted from 1, those live at the start first.

    An attempt lasts `duration`, or what that says of its run's number. Each `fail_every`th run fails, and those of the
    plan times in `fail_at`, with all their attempts. During `outages` (from, to) runs go on, but nobody plans.
    `workers` is how many runs are executed at once at most; None: there is always a worker free. The limits and keys of
    `job` count as if it had no other runs; None: it has none.
    """

    duration: timedelta | Callable[[int], timedelta] = timedelta(seconds=1)
    fail_every: int | None = None
    fail_at: frozenset[int] = frozenset()
    outages: tuple[tuple[int, int], ...] = ()
    workers: int | None = None
    job: JobDefinition | None = None

    def __post_init__(self) -> None:
        if isinstance(self.duration, timedelta) and self.duration < timedelta(0):
            raise Invalid("a simulated run cannot last less than nothing", hint='duration="30s"')
        if self.fail_every is not None and self.fail_every < 1:
            raise Invalid(f"fail_every must be 1 or more, not {self.fail_every}", hint="1: every run fails")
        if self.workers is not None and self.workers < 1:
            raise Invalid(f"workers must be 1 or more, not {self.workers}", hint="leave it out: always one is free")
        if any(end < begin for begin, end in self.outages):
            raise Invalid("an outage ends before it begins")

    def lasts(self, number: int) -> int:
        return max(0, in_micros(self.duration if isinstance(self.duration, timedelta) else self.duration(number)))

    def fails(self, number: int, plan_time: int | None) -> bool:
        return plan_time in self.fail_at or (self.fail_every is not None and number % self.fail_every == 0)

    def awake(self, at: int) -> int:
        """Return the first instant from `at` on when a planner works."""
        for begin, end in sorted(self.outages):
            if begin <= at < end:
                at = end
        return at


class SimulatedEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fate of a plan time; `missed` and `covered` stand for `count` of them, up to `to_at`."""

    kind: str
    plan_time: int
    scope: Scope | None = None
    started_at: int | None = None
    finished_at: int | None = None
    attempt: int = 0
    failed: bool = False
    reason: str | None = None
    count: int = 1
    to_at: int | None = None


class Simulation(msgspec.Struct, frozen=True):
    """Result of a simulation. `events` are in the order of decision; with `more`, these are the first of them.

    `counts`, by kind, are of all events up to `until`.

    Each plan time is one of run, skipped, cancelled, covered (for each scope) or missed; `failed` are among the runs.
    """

    events: tuple[SimulatedEvent, ...]
    counts: dict[str, int]
    until: int
    more: bool = False


def simulate(
    standing: ScheduleState,
    retry: RetryPolicy,
    start: int,
    until: int,
    assuming: Assumptions | None = None,
    *,
    lanes: Mapping[Scope, Lane] | None = None,
    limit: int = 1_000,
    most: int = 100_000,
) -> Simulation:
    """Simulate from `start` to `until`; `retry` is that of the runs. After `most` decisions it ends early, and says so.

    `lanes` are those at the start, one for each scope: their live runs go on, and are in no count. Another policy is
    tried by another definition in `standing`.
    """
    if until < start:
        raise Invalid("a simulation cannot end before it starts")
    if lanes is None:
        lanes = {scope: Lane() for scope in standing.definition.lanes}
    world = _World(standing, retry, assuming or Assumptions(), lanes, limit)
    reached = world.run_until(start, until, most)
    return Simulation(tuple(world.events), world.counts, reached, world.more)


@dataclass(slots=True)
class _Run:
    id: str
    number: int
    scope: Scope
    plan_time: int | None = None
    attempt: int = 1
    single: bool = False
    waits_for: set[str] = field(default_factory=set)
    followers: list[str] = field(default_factory=list)
    eligible: bool = False
    begun: bool = False
    running: bool = False
    place: int | None = None


def _one_at_a_time(standing: ScheduleState) -> ScheduleState:
    """Return the state with one plan time per tick, as planning does where limits or keys decide.

    Each decision has to see the result of the one before it.
    """
    policy = standing.definition.catch_up
    if not policy.runs_each:
        return standing
    return standing.catching_up(msgspec.structs.replace(policy, per_tick=1))


class _World:
    """State of the simulated world; it jumps from one event to the next."""

    def __init__(
        self,
        standing: ScheduleState,
        retry: RetryPolicy,
        assuming: Assumptions,
        lanes: Mapping[Scope, Lane],
        limit: int,
    ) -> None:
        self.events: list[SimulatedEvent] = []
        self.more = False
        self.counts = dict.fromkeys(KINDS, 0)
        self._limits = SimulatedLimits(standing, assuming.job)
        self._standing = _one_at_a_time(standing) if self._limits.decides else standing
        self._stoppable = assuming.job is None or assuming.job.cancel.supported
        self._retry = retry
        self._assuming = assuming
        self._lanes = dict(lanes)
        self._limit = limit
        self._now = 0
        self._agenda: list[tuple[int, int, int, str]] = []
        self._ready: dict[tuple[str, ...], list[tuple[int, int, str]]] = {}
        self._live: dict[str, _Run] = {}
        self._running = 0
        self._decisions = self._ids = self._numbers = 0
        self._awaits: str | None = None
        self._stops: dict[str, tuple[str, ...]] = {}
        self._opens_at: int | None = None

    def run_until(self, start: int, until: int, most: int) -> int:
        """Run the simulation; return the instant that it reached."""
        self._now = start
        self._take_over()
        self._plan_at(self._standing.next_at)
        while self._agenda and self._agenda[0][0] <= until:
            if self._decisions >= most:
                return self._now
            self._now, kind, _, run_id = heappop(self._agenda)
            if kind == _PLAN:
                self._plan()
            elif run_id in self._live:
                run = self._live[run_id]
                self._attempt_over(run) if kind == _END else self._become_eligible(run)
            self._start_ready()
        return until

    def _take_over(self) -> None:
        """Take over the runs that are live already: claimed ones begin now (their start is unknown), others are due."""
        for scope, lane in self._lanes.items():
            for place, live_run in enumerate(lane.live):
                run = self._new_run(live_run.id, scope)
                run.begun = live_run.begun
                self._limits.enter(live_run.id, scope, self._now)
                if live_run.claimed:
                    self._start(run)
                    continue
                self._wait_for(run, tuple(earlier.id for earlier in lane.live[:place] if earlier.followed))
                self._schedule_event(self._now, _BEGIN, run)
            if self._standing.definition.follows is not None and self._standing.next_plan is None and lane.live:
                self._awaits = lane.live[-1].id

    def _plan(self) -> None:
        done = tick(
            self._standing,
            self._lanes,
            self._now,
            new_id=self._new_id,
            max_attempts=self._retry.max_attempts,
            refuse=self._refuse,
        )
        self._decisions += 1 + len(done.planned)
        self._lanes = dict(done.lanes)
        self._standing = msgspec.structs.replace(
            self._standing, cursor=done.cursor, next_plan=done.next_plan, fired=done.fired
        )
        for gap in done.missed:
            self._note("missed", gap.from_at, reason=gap.reason, count=gap.count, to_at=gap.to_at)
        for planned in done.planned:
            self._apply(planned)
        if done.pause:
            self._note("paused", done.cursor, reason=done.pause)
            return
        self._awaits = done.awaits
        self._plan_at(done.next_at)

    def _plan_at(self, at: int | None) -> None:
        if at is not None:
            heappush(self._agenda, (self._assuming.awake(max(at, self._now)), _PLAN, 0, ""))

    def _new_id(self) -> str:
        self._ids += 1
        return f"#{self._ids}"

    def _refuse(self, scope: Scope, plan_time: int, create: Create) -> str | None:
        """Ask limits and keys, which see what the same tick has decided before; return why a run is refused."""
        new = f"#{self._ids + 1}"
        answer = self._limits.refuse(new, scope, plan_time, create, self._now)
        if isinstance(answer, str):
            return answer
        self._stops[new] = answer
        return None

    def _apply(self, planned: Planned) -> None:
        if planned.covers_from is not None:
            last = self._standing.times.prev(planned.plan_time)
            self._note("covered", planned.covers_from, planned.scope, count=planned.covered, to_at=last)
        if not isinstance(planned.decision, Create):
            self._note("skipped", planned.plan_time, planned.scope, reason=planned.decision.reason)
            return
        create = planned.decision
        run = self._new_run(planned.run_id, planned.scope, planned.plan_time)
        run.attempt, run.single = create.attempt, create.single
        run.place = self._note("run", planned.plan_time, planned.scope, attempt=run.attempt)
        for run_id in (*create.displaces, *self._stops.pop(run.id, ())):
            if run_id in self._live:
                self._give_way(self._live[run_id], run)
        self._wait_for(run, create.after)
        self._schedule_event(max(self._now, planned.eligible_at), _BEGIN, run)

    def _give_way(self, run: _Run, to: _Run) -> None:
        """End a run at once, if it can be stopped. One that waits for its retry has failed, as planning sees it."""
        if not run.begun:
            self._end(run, "skipped", reason=f"superseded by run {to.id}")
        elif self._stoppable or not run.running:
            waits = not run.running
            self._end(run, "cancelled", reason=f"{'superseded by' if waits else 'gave way to'} run {to.id}", lost=waits)
        else:
            self._limits.stay(run.id)

    def _new_run(self, run_id: str, scope: Scope, plan_time: int | None = None) -> _Run:
        self._numbers += 1
        run = self._live[run_id] = _Run(run_id, self._numbers, scope, plan_time)
        return run

    def _wait_for(self, run: _Run, others: tuple[str, ...]) -> None:
        run.waits_for = {other for other in others if other in self._live}
        for other in run.waits_for:
            self._live[other].followers.append(run.id)

    def _schedule_event(self, at: int, kind: int, run: _Run) -> None:
        heappush(self._agenda, (at, kind, run.number, run.id))

    def _become_eligible(self, run: _Run) -> None:
        run.eligible = True
        if not run.waits_for:
            gates = tuple(gate.key for gate in self._limits.gates(run.id))
            heappush(self._ready.setdefault(gates, []), (self._now, run.number, run.id))

    def _start_ready(self) -> None:
        """Start the runs that have been ready for longest and whose limits have room, while a worker is free."""
        opening: list[int] = []
        full: set[tuple[str, ...]] = set()
        while self._assuming.workers is None or self._running < self._assuming.workers:
            for gates in [gates for gates, runs in self._ready.items() if not self._drop_ended(runs)]:
                del self._ready[gates]
            heads = [(runs[0], gates) for gates, runs in self._ready.items() if gates not in full]
            if not heads:
                break
            (_, _, run_id), gates = min(heads)
            at = self._limits.opens_at(run_id, self._now)
            if at == self._now:
                heappop(self._ready[gates])
                self._start(self._live[run_id])
                continue
            full.add(gates)
            opening += [] if at is None else [at]
        if opening and min(opening) != self._opens_at:
            self._opens_at = min(opening)
            heappush(self._agenda, (self._opens_at, _OPEN, 0, ""))

    def _drop_ended(self, runs: list[tuple[int, int, str]]) -> bool:
        """Drop runs that are no longer live from the front; return whether any is left."""
        while runs and runs[0][2] not in self._live:
            heappop(runs)
        return bool(runs)

    def _start(self, run: _Run) -> None:
        run.running = run.begun = True
        self._limits.begin(run.id, self._now)
        self._running += 1
        self._mark(run, begun=True, claimed=True)
        event = None if run.place is None else self.events[run.place]
        if event is None or event.started_at is None:
            self._update_event(run, started_at=self._now)
        self._schedule_event(self._now + self._assuming.lasts(run.number), _END, run)

    def _attempt_over(self, run: _Run) -> None:
        failed = self._assuming.fails(run.number, run.plan_time)
        again = after_failure(self._retry, run.attempt, 0.0) if failed and not run.single else None
        if not isinstance(again, TryAgain):
            self._end(run, "run", failed=failed)
            return
        self._running -= 1
        run.running = run.eligible = False
        run.attempt += 1
        self._limits.wait(run.id)
        self._mark(run, claimed=False)
        self._schedule_event(self._now + in_micros(again.after), _BEGIN, run)

    def _mark(self, run: _Run, **changes: bool) -> None:
        lane = self._lanes[run.scope]
        live = tuple(msgspec.structs.replace(r, **changes) if r.id == run.id else r for r in lane.live)
        self._lanes[run.scope] = msgspec.structs.replace(lane, live=live)

    def _end(
        self, run: _Run, kind: str, *, failed: bool = False, reason: str | None = None, lost: bool = False
    ) -> None:
        """End a run; `lost`: it gave way after an attempt that failed."""
        del self._live[run.id]
        self._limits.leave(run.id, succeeded=kind == "run" and not failed)
        self._running -= run.running
        attempt = run.attempt - lost  # the retry that it waited for never began
        lane = self._lanes[run.scope].without((run.id,))
        if kind != "skipped":
            neutral = kind == "cancelled" and not lost
            lane = lane.ended(failed=failed or lost, neutral=neutral, attempt=attempt, finished_at=self._now)
        self._lanes[run.scope] = lane
        if run.plan_time is not None:
            self.counts["run"] -= 1
            self.counts[kind] += 1
            self.counts["failed"] += failed
        had = 0 if kind == "skipped" else attempt
        self._update_event(run, kind=kind, finished_at=self._now, attempt=had, failed=failed, reason=reason)
        for follower in (self._live[run_id] for run_id in run.followers if run_id in self._live):
            follower.waits_for.discard(run.id)
            if follower.eligible:
                self._become_eligible(follower)
        if run.id == self._awaits:
            self._awaits = None
            upcoming = following_plan(self._standing, self._now)
            self._standing = msgspec.structs.replace(self._standing, next_plan=upcoming)
            self._plan_at(self._standing.next_at)

    def _note(self, kind: str, plan_time: int, scope: Scope | None = None, **facts: object) -> int | None:
        """Record an event; return its place among the events, if it is kept."""
        event = msgspec.structs.replace(SimulatedEvent(kind=kind, plan_time=plan_time, scope=scope), **facts)
        self.counts[kind] += event.count
        if len(self.events) >= self._limit:
            self.more = True
            return None
        self.events.append(event)
        return len(self.events) - 1

    def _update_event(self, run: _Run, **facts: object) -> None:
        if run.place is not None:
            self.events[run.place] = msgspec.structs.replace(self.events[run.place], **facts)
