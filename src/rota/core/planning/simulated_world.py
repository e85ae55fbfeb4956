"""Simulated world: planning, workers and runs of one schedule, which jumps from one event to the next.

At one instant, in this order: attempts end; runs begin that waited for an end; plan times are decided, the oldest
first; runs that were asked to stop do; runs begin whose time has come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush

import msgspec

from rota.core.jobs.retry import RetryPolicy, TryAgain, after_failure
from rota.core.planning.assumptions import KINDS, Assumptions, Attempt, Beginning, SimulatedEvent, StandingRun
from rota.core.planning.overlap_and_failure import Create, Lane
from rota.core.planning.simulated_limits import SimulatedLimits, Waiting
from rota.core.planning.tick import Planned, ScheduleState, eligible, following_plan, no_runs, tick
from rota.core.runs.admit import Admitted, Applicant, Held, superseded_by
from rota.core.schedules.backoff import adapted_backoff
from rota.values.durations import in_micros
from rota.values.scope import Scope

_END, _PLAN, _BEGIN, _OPEN = range(4)
_NEW = "#"
"""Begin of the ids of runs that the simulation makes."""
_LAST: Waiting = (2**62, 0, "")


@dataclass(slots=True)
class _Run:
    """Run of the world. `last`: the attempt after which there is no retry; `in_lane`: it is one of the schedule's."""

    id: str
    number: int
    scope: Scope
    run_at: int
    last: int
    plan_time: int | None = None
    attempt: int = 1
    in_lane: bool = True
    waits_for: set[str] = field(default_factory=set)
    followers: list[str] = field(default_factory=list)
    due: bool = False
    begun: bool = False
    running: bool = False
    place: int | None = None
    failing: bool = False

    @property
    def current(self) -> Attempt:
        return Attempt(self.number, self.scope, self.plan_time, self.attempt)


class World:
    """State of the simulated world."""

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
        job = assuming.job
        self._limits = SimulatedLimits(standing, job, assuming.quotas)
        # One plan time per tick, as planning does where limits or keys decide: each has to see the one before it.
        self._standing = standing.paced(1) if self._limits.decides else standing
        self._refusal = None if job is None else no_runs(standing.definition, job)
        self._stoppable = job is None or job.cancel.supported
        self._retry, self._assuming, self._limit = retry, assuming, limit
        self._lanes = dict(lanes)
        self._now = 0
        self._agenda: list[tuple[int, int, int, str]] = []
        self._ready: dict[str, list[Waiting]] = {}
        self._live: dict[str, _Run] = {}
        self._running = self._decisions = self._ids = self._numbers = 0
        self._awaits: str | None = None
        self._admitted: dict[str, tuple[Applicant, tuple[str, ...]]] = {}
        self._asked: dict[str, str] = {}
        self._ended: list[tuple[int, Scope, bool, bool, int]] = []
        self._opens_at: int | None = None

    def run_until(self, start: int, until: int, most: int, beginning: Beginning) -> int:
        """Run the simulation; return the instant that it reached."""
        self._now = start
        if beginning.inactive is not None:
            self._begin_inactive(beginning.inactive, beginning.resumes_at)
        self._take_over(beginning)
        self._plan_at(self._standing.next_at)
        while self._agenda and self._agenda[0][0] <= until:
            if self._decisions >= most:
                return self._now
            self._now, *_ = self._agenda[0]
            self._each(_END, self._attempt_over)
            self._limits.open_freed(self._now, self._first_under)
            self._start_ready()
            while self._decisions < most and self._due(_PLAN) is not None:
                self._plan()
            self._stop_asked()
            self._each(_BEGIN, self._become_due)
            while self._due(_OPEN) is not None:
                self._opens_at = None
            self._limits.open_due(self._now, self._first_under)
            self._start_ready()
        return until

    def _begin_inactive(self, why: str, resumes_at: int | None) -> None:
        """Plan nothing, or from when it is resumed on: what was due before is left out then, as planning does it."""
        self._note("paused", self._now, reason=why)
        times, next_plan = self._standing.times, None
        if resumes_at is not None:
            follows = self._standing.definition.follows is not None
            next_plan = times.next_allowed(resumes_at) if follows else times.next(resumes_at)
        cursor = self._now if resumes_at is None else resumes_at
        self._standing = msgspec.structs.replace(self._standing, cursor=cursor, next_plan=next_plan)

    def _due(self, kind: int) -> str | None:
        """Take the next event of a kind that is due now; return its run, or None if there is none."""
        if not self._agenda or self._agenda[0][:2] > (self._now, kind):
            return None
        *_, run_id = heappop(self._agenda)
        return run_id

    def _each(self, kind: int, act: Callable[[_Run], None]) -> None:
        while (run_id := self._due(kind)) is not None:
            if run_id in self._live:
                act(self._live[run_id])

    def _take_over(self, beginning: Beginning) -> None:
        """Take over the runs that are live already: claimed ones go on; others are due, or will be."""
        known = {run.id: run for run in beginning.runs}
        in_lanes = {live.id: scope for scope, lane in self._lanes.items() for live in lane.live}
        for scope, lane in self._lanes.items():
            for place, live in enumerate(lane.live):
                if live.id not in known:
                    after = tuple(earlier.id for earlier in lane.live[:place] if earlier.followed)
                    claimed_at = self._now if live.claimed else None
                    known[live.id] = StandingRun(
                        id=live.id, scope=scope, run_at=self._now, begun=live.begun, claimed_at=claimed_at, after=after
                    )
        self._limits.take_over_facts(beginning.keys, beginning.starts, beginning.limits)
        for standing in known.values():
            self._take_over_run(standing, in_lane=standing.id in in_lanes)
        self._awaits = beginning.awaits
        follows = self._standing.definition.follows is not None and self._standing.next_plan is None
        if self._awaits is None and follows:
            self._awaits = next((lane.live[-1].id for lane in self._lanes.values() if lane.live), None)
        self._start_ready()

    def _take_over_run(self, standing: StandingRun, *, in_lane: bool) -> None:
        last = standing.last or self._retry.max_attempts
        run = self._new_run(standing.id, standing.scope, standing.run_at, last, standing.plan_time)
        run.attempt, run.begun, run.in_lane = standing.attempt, standing.begun, in_lane
        self._limits.enter(run.id, standing.gates, self._now, begun=run.begun)
        self._wait_for(run, standing.after)
        if standing.claimed_at is None:
            self._schedule_event(max(self._now, run.run_at), _BEGIN, run)
            return
        self._start(run, standing.claimed_at, counted=True)
        if standing.stopping:
            self._limits.stop(run.id)
            self._asked[run.id] = "it was asked to stop"
            self._schedule_event(self._now, _OPEN, run)

    def _plan(self) -> None:
        self._digest()
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
        return f"{_NEW}{self._ids}"

    def _refuse(self, scope: Scope, plan_time: int, create: Create) -> str | None:
        """Ask limits and keys, which see what the same tick has decided before; return why a run is refused."""
        if self._refusal is not None:
            return self._refusal
        run, decision = self._limits.ask(f"{_NEW}{self._ids + 1}", scope, plan_time, create, self._now)
        if isinstance(decision, Admitted):
            self._limits.enter(run.id, run.gates, self._now)
            self._limits.take_keys(run.id, run.holds, self._now)
            self._admitted[run.id] = run, decision.stops
            for id in (*run.displaces, *decision.stops):
                if id in self._live and not self._is_fixed(self._live[id]):
                    self._limits.stop(id)
            return None
        if isinstance(decision, Held) and decision.replaces and decision.run_id in self._live:
            self._replace(self._live[decision.run_id], run, eligible(self._standing, scope, plan_time), create)
        return decision.reason

    def _replace(self, holder: _Run, by: Applicant, run_at: int, create: Create) -> None:
        """Give the holder of a key what the new run has, but for its plan time."""
        holder.attempt, holder.last = 1, 1 if create.single else self._retry.max_attempts
        holder.run_at, holder.due = run_at, False
        self._limits.enter(holder.id, by.gates, self._now)
        self._schedule_event(max(self._now, run_at), _BEGIN, holder)

    def _apply(self, planned: Planned) -> None:
        if planned.covers_from is not None:
            last = self._standing.times.prev(planned.plan_time)
            self._note("covered", planned.covers_from, planned.scope, count=planned.covered, to_at=last)
        if not isinstance(planned.decision, Create):
            self._note("skipped", planned.plan_time, planned.scope, reason=planned.decision.reason)
            return
        create = planned.decision
        last = create.attempt if create.single else self._retry.max_attempts
        run = self._new_run(planned.run_id, planned.scope, planned.eligible_at, last, planned.plan_time)
        run.attempt = create.attempt
        run.place = self._note("run", planned.plan_time, planned.scope, attempt=run.attempt)
        _, stops = self._admitted.pop(run.id)
        for run_id in (*create.displaces, *stops):
            if run_id in self._live:
                self._give_way(self._live[run_id], run)
        self._wait_for(run, create.after)
        self._schedule_event(max(self._now, planned.eligible_at), _BEGIN, run)

    def _give_way(self, run: _Run, to: _Run) -> None:
        """End a run that nobody has; ask another one to stop. One that waits for its retry has failed."""
        if run.running:
            if self._stoppable:
                self._asked.setdefault(run.id, superseded_by(to.id))
        elif run.begun:
            self._end(run, "cancelled", reason=superseded_by(to.id), lost=True)
        else:
            self._end(run, "skipped", reason=superseded_by(to.id))

    def _is_fixed(self, run: _Run) -> bool:
        return run.running and not self._stoppable

    def _stop_asked(self) -> None:
        asked, self._asked = self._asked, {}
        for run_id, reason in asked.items():
            if run_id in self._live:
                self._end(self._live[run_id], "cancelled", reason=reason)
        self._limits.open_freed(self._now, self._first_under)
        self._digest()

    def _new_run(self, run_id: str, scope: Scope, run_at: int, last: int, plan_time: int | None = None) -> _Run:
        self._numbers += 1
        run = self._live[run_id] = _Run(run_id, self._numbers, scope, run_at, last, plan_time)
        return run

    def _wait_for(self, run: _Run, others: tuple[str, ...]) -> None:
        run.waits_for = {other for other in others if other in self._live}
        for other in run.waits_for:
            self._live[other].followers.append(run.id)

    def _schedule_event(self, at: int, kind: int, run: _Run) -> None:
        heappush(self._agenda, (at, kind, run.number, run.id))

    def _become_due(self, run: _Run) -> None:
        if run.run_at <= self._now and not run.running:
            run.due = True
            self._queue(run)

    def _queue(self, run: _Run) -> None:
        """Let a run wait for a worker, if nothing else holds it back."""
        if run.due and not run.waits_for:
            heappush(self._ready.setdefault(self._limits.key_of(run.id), []), (run.run_at, run.number, run.id))

    def _start_ready(self) -> None:
        """Start the runs that are ready and whose limits have room, while a worker is free."""
        while (slots := self._slots()) > 0 and (chosen := self._chosen(slots)):
            for run_id in chosen:
                self._start(self._live[run_id], self._now)
        opens_at = self._limits.opens_at()
        if opens_at is not None and opens_at != self._opens_at:
            self._opens_at = opens_at
            heappush(self._agenda, (opens_at, _OPEN, 0, ""))

    def _slots(self) -> int:
        workers = self._assuming.workers
        return len(self._live) if workers is None else workers - self._running

    def _chosen(self, slots: int) -> list[str]:
        """Choose runs to begin, as a claim does: from those without limits or from the limited ones, whichever has the
        first run, up to the first one of the others.
        """
        heads = {key: head for key in list(self._ready) if (head := self._head(key)) is not None}
        plain = heads.pop("", _LAST)
        limited = {key: head for key, head in heads.items() if self._limits.is_open(key)}
        first_limited = min(limited.values(), default=_LAST)
        if first_limited < plain:
            in_time = {key: head for key, head in limited.items() if head < plain}
            waiting = partial(self._first, before=plain)
            if taken := self._limits.claim(in_time, waiting, slots, self._now):
                return taken
            first_limited = _LAST  # their limits are full: the others may go
        return [run_id for _, _, run_id in self._first("", slots, first_limited)] if plain != _LAST else []

    def _first_under(self, key: str) -> Waiting | None:
        return self._head(key) if key in self._ready else None

    def _head(self, key: str) -> Waiting | None:
        """Return the first run that waits under a limit; what has ended, or waits elsewhere by now, is dropped."""
        queue = self._ready[key]
        while queue and not self._waits(queue[0], key):
            heappop(queue)
        if not queue:
            del self._ready[key]
            return None
        return queue[0]

    def _waits(self, head: Waiting, key: str) -> bool:
        run = self._live.get(head[2])
        is_there = run is not None and run.due and not run.running and run.run_at == head[0]
        return is_there and self._limits.key_of(head[2]) == key

    def _first(self, key: str, count: int, before: Waiting) -> list[Waiting]:
        """Return the first runs that wait under a limit, which stay where they are."""
        heads: dict[Waiting, None] = {}
        queue = self._ready[key]
        while queue and len(heads) < count and queue[0] < before:
            head = heappop(queue)
            if self._waits(head, key):
                heads[head] = None
        for head in heads:
            heappush(queue, head)
        return list(heads)

    def _start(self, run: _Run, at: int, *, counted: bool = False) -> None:
        """Start an attempt; `at` is in the past, and `counted` by rates, if it goes on since before the start."""
        run.running = run.begun = True
        run.due = False
        self._limits.begin(run.id, at, counted=counted)
        self._running += 1
        self._mark(run, begun=True, claimed=True)
        event = None if run.place is None else self.events[run.place]
        if event is None or event.started_at is None:
            self._update_event(run, started_at=at)
        lasts, run.failing = self._assuming.outcome(run.current)
        self._schedule_event(max(self._now, at + lasts), _END, run)

    def _attempt_over(self, run: _Run) -> None:
        again = after_failure(RetryPolicy(run.last, self._retry.backoff), run.attempt, 0.0) if run.failing else None
        if not isinstance(again, TryAgain):
            self._end(run, "run", failed=run.failing)
            return
        self._running -= 1
        run.running, run.attempt = False, run.attempt + 1
        rest = in_micros(again.after)
        if self._retry.has_default_backoff and run.plan_time is not None:
            rest = adapted_backoff(rest, self._standing.times, self._now)
        run.run_at = self._now + rest
        self._limits.wait(run.id)
        self._mark(run, claimed=False)
        if rest:
            self._schedule_event(run.run_at, _BEGIN, run)
        else:
            self._become_due(run)

    def _mark(self, run: _Run, **changes: bool) -> None:
        if run.in_lane:
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
        if run.in_lane:
            lane = self._lanes[run.scope].without((run.id,))
            self._lanes[run.scope] = lane
            if kind != "skipped":
                self._ended.append((run.number, run.scope, kind == "cancelled" and not lost, failed or lost, attempt))
        if run.id.startswith(_NEW):
            self.counts["run"] -= 1
            self.counts[kind] += 1
            self.counts["failed"] += failed
        had = 0 if kind == "skipped" else attempt
        self._update_event(run, kind=kind, finished_at=self._now, attempt=had, failed=failed, reason=reason)
        for follower in (self._live[run_id] for run_id in run.followers if run_id in self._live):
            # Whoever waited for a run that gave way waits for what that one waited for.
            awaited = {other for other in run.waits_for if other in self._live}
            for other in awaited - follower.waits_for:
                self._live[other].followers.append(follower.id)
            follower.waits_for = (follower.waits_for | awaited) - {run.id}
            self._queue(follower)
        for awaited_run in (self._live[run_id] for run_id in run.waits_for if run_id in self._live):
            waiting = (self._live[run_id] for run_id in awaited_run.followers if run_id in self._live)
            if not any(awaited_run.id in follower.waits_for for follower in waiting):
                self._mark(awaited_run, followed=False)
        if run.id == self._awaits:
            self._awaits = None
            upcoming = following_plan(self._standing, self._now)
            self._standing = msgspec.structs.replace(self._standing, next_plan=upcoming)
            self._plan_at(self._standing.next_at)

    def _digest(self) -> None:
        """Tell lanes of runs that ended: those of one instant in the order in which they were made, as planning."""
        for _, scope, neutral, failed, attempt in sorted(self._ended, key=lambda end: end[0]):
            lane = self._lanes[scope]
            self._lanes[scope] = lane.ended(failed=failed, neutral=neutral, attempt=attempt, finished_at=self._now)
        self._ended.clear()

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
