"""Planning: turn a schedule, its lanes and an instant into runs, skips, gaps, and where to look next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import msgspec
from msgspec import UNSET

from rota.core.calendar.rules import Times
from rota.core.jobs.job import JobDefinition
from rota.core.planning.catch_up import Due, Gap, choose
from rota.core.planning.overlap_and_failure import Create, Lane, LiveRun, Pause, Skip, decide
from rota.core.schedules.policies import CatchUp, Overlap, OverlapMode
from rota.core.schedules.schedule import ScheduleDefinition
from rota.values.durations import in_micros
from rota.values.scope import Scope

SECOND = 1_000_000
WELL = Lane()
PLAIN = Create()


class ScheduleState(msgspec.Struct, frozen=True, gc=False):
    """State of a schedule: all that planning has to know of it, besides its lanes.

    `next_plan` is the first plan time after the cursor, `fired` how many plan times got a run, skipped ones included.
    """

    id: str
    name: str
    definition: ScheduleDefinition
    cursor: int
    next_plan: int | None
    fired: int = 0

    @property
    def times(self) -> Times:
        return self.definition.times(self.name)

    @property
    def room(self) -> int | None:
        most = self.definition.max_runs
        return None if most is None else max(0, most - self.fired)

    def catching_up(self, policy: CatchUp) -> ScheduleState:
        """Return the state under another catch-up policy, as for the plan times of a pause."""
        return msgspec.structs.replace(self, definition=msgspec.structs.replace(self.definition, catch_up=policy))

    def paced(self, per_tick: int) -> ScheduleState:
        """Return the state with at most so many plan times per tick, if each of those that are due gets a run."""
        policy = self.definition.catch_up
        if not policy.runs_each or policy.per_tick <= per_tick:
            return self
        return self.catching_up(msgspec.structs.replace(policy, per_tick=per_tick))

    def queueing(self) -> ScheduleState:
        """Return the state with plan times that wait for each other."""
        overlap = Overlap(mode=OverlapMode.QUEUE_ALL)
        return msgspec.structs.replace(self, definition=msgspec.structs.replace(self.definition, overlap=overlap))

    @property
    def next_at(self) -> int | None:
        """The instant when the first undecided plan time is due."""
        return None if self.next_plan is None else self.next_plan + self.definition.delay_micros


class Planned(msgspec.Struct, frozen=True, gc=False):
    """Decision about one plan time for one scope. `by_hand`: it was triggered then, the schedule did not name it."""

    run_id: str
    scope: Scope
    plan_time: int
    eligible_at: int
    decision: Create | Skip
    covers_from: int | None = None
    covered: int = 0
    by_hand: bool = False


class Tick(msgspec.Struct, frozen=True, gc=False):
    """Result of planning: all that it changes. `awaits`: the run whose end names the next plan time."""

    planned: tuple[Planned, ...]
    missed: tuple[Gap, ...]
    lanes: Mapping[Scope, Lane]
    cursor: int
    next_plan: int | None
    next_at: int | None
    fired: int
    pause: str | None = None
    awaits: str | None = None


Refuse = Callable[[Scope, int, Create], str | None]
"""Callback, asked last about each run that overlap and failure allow: returns why a limit refuses it, or None."""


def no_runs(definition: ScheduleDefinition, job: JobDefinition) -> str | None:
    """Return why a job takes no runs of a schedule at all; None if it does."""
    if not job.enabled:
        return f"job {job.name!r} is disabled"
    if job.replicas is not None and definition.limit is not None:
        return f"job {job.name!r} has replicas, which take no limit"
    return None


def no_limits(_scope: Scope, _plan_time: int, _create: Create) -> str | None:
    return None


def tick(
    standing: ScheduleState,
    lanes: Mapping[Scope, Lane],
    now: int,
    *,
    new_id: Callable[[], str],
    max_attempts: int,
    refuse: Refuse = no_limits,
    horizon: int | None = None,
    newcomers: frozenset[Scope] = frozenset(),
) -> Tick:
    """Decide every plan time that is due at `now`: those up to `now` less the schedule's delay, or up to `horizon`.

    `lanes` holds one entry for each scope; `newcomers` of them get no catch-up, only the newest plan time.
    """
    definition = standing.definition
    if horizon is None:
        horizon = due_until(definition.delay_micros, now)
    if len(lanes) == 1 and not newcomers:
        ((scope, lane),) = lanes.items()
        # Nearly all schedules take this path; `test_tick` holds it to the result of the general one.
        if (done := _ordinary(standing, scope, lane, horizon, new_id, refuse)) is not None:
            return done
    due = _due(standing, definition.catch_up, horizon)
    turn = _Turn(standing, dict(lanes), now, new_id, max_attempts, refuse)
    cursor, pause, decided = due.cursor, None, 0
    for place, plan_time in enumerate(due.kept):
        covering = (due.covers_from, due.covered) if place == 0 else (None, 0)
        decided += 1
        absent = newcomers if due.more or plan_time != due.kept[-1] else frozenset()
        pause = turn.plan(plan_time, covering, absent, newcomers)
        if pause:
            cursor = plan_time
            break
    fired = standing.fired + (decided if lanes else 0)
    if definition.follows is not None:
        return _followed(standing, turn, due, cursor, fired, pause, now)
    if pause is not None or (definition.max_runs is not None and fired >= definition.max_runs):
        next_plan = None
    else:
        next_plan = standing.times.next(cursor) if due.following is UNSET else due.following
    next_at = None if next_plan is None else max(next_plan + definition.delay_micros, now if due.more else 0)
    return Tick(tuple(turn.planned), due.missed, turn.lanes, cursor, next_plan, next_at, fired, pause)


def due_until(delay: int, now: int) -> int:
    """Return the last plan time that may be decided now."""
    return now - delay


class Fire(msgspec.Struct, frozen=True, gc=False):
    """Plan time that gets a run, whatever happened before, as long as its lane is well.

    `next_plan`, `next_at`: the plan time that follows it, and when that is due.
    """

    plan_time: int
    eligible_at: int
    next_plan: int | None
    next_at: int | None


class OrdinaryRule(msgspec.Struct, frozen=True, gc=False):
    """Rule of the common case: one plan time is due, and no policy has a say if its lane is well.

    `delay` and `window` in µs.
    """

    delay: int
    window: int

    def fire(self, times: Times, plan_time: int | None, horizon: int) -> Fire | None:
        """Return the fire of a plan time; None if it is not that simple.

        It is the same for all schedules with this rule and plan time, so it can be computed once for a batch: what
        differs by schedule and scope, such as jitter, is added to it.
        """
        if plan_time is None or plan_time > horizon:
            return None
        following = times.next(plan_time)
        if (following is not None and following <= horizon) or horizon - plan_time > self.window:
            return None
        next_at = None if following is None else following + self.delay
        return Fire(plan_time, plan_time + self.delay, following, next_at)


def ordinary_rule(definition: ScheduleDefinition) -> OrdinaryRule | None:
    """Return the rule of a schedule's ordinary fires; None if a policy has a say in each of them."""
    return OrdinaryRule(definition.delay_micros, definition.window_micros) if definition.is_plain else None


def _ordinary(
    standing: ScheduleState, scope: Scope, lane: Lane, horizon: int, new_id: Callable[[], str], refuse: Refuse
) -> Tick | None:
    """Plan an ordinary fire on a fast path; the result is the same as that of the general steps."""
    if lane is not WELL and lane != WELL:
        return None
    rule = ordinary_rule(standing.definition)
    fire = None if rule is None else rule.fire(standing.times, standing.next_plan, horizon)
    if fire is None:
        return None
    reason = refuse(scope, fire.plan_time, PLAIN)
    run_id = new_id()
    at = fire.eligible_at if not standing.definition.jitter else eligible(standing, scope, fire.plan_time)
    planned = Planned(run_id, scope, fire.plan_time, at, PLAIN if reason is None else Skip(reason))
    after = {scope: lane if reason is not None else Lane((LiveRun(run_id),))}
    return Tick((planned,), (), after, fire.plan_time, fire.next_plan, fire.next_at, standing.fired + 1)


def _due(standing: ScheduleState, catch_up: CatchUp, horizon: int) -> Due:
    first = standing.next_plan
    if first is None or first > horizon or standing.room == 0:
        return Due((), standing.cursor)
    if standing.definition.follows is not None:
        return Due((first,), first)  # there is only this one, however late it is: catch-up has no say
    times = standing.times
    second = times.next(first)
    if (
        (second is None or second > horizon)
        and catch_up.runs_only_newest
        and _is_inside_window(first, horizon, catch_up)
    ):
        return Due((first,), first, following=second)
    return choose(catch_up, times, standing.cursor, horizon, standing.room)


def _is_inside_window(plan_time: int, horizon: int, catch_up: CatchUp) -> bool:
    return horizon - plan_time <= in_micros(catch_up.window)


class _Turn:
    """Decisions about one schedule's plan times in order, each of which sees the one before it."""

    def __init__(
        self,
        standing: ScheduleState,
        lanes: dict[Scope, Lane],
        now: int,
        new_id: Callable[[], str],
        max_attempts: int,
        refuse: Refuse,
    ) -> None:
        self.lanes = lanes
        self.planned: list[Planned] = []
        self._standing = standing
        self._now = now
        self._new_id = new_id
        self._max_attempts = max_attempts
        self._refuse = refuse

    def plan(
        self, plan_time: int, covering: tuple[int | None, int], absent: frozenset[Scope], newcomers: frozenset[Scope]
    ) -> str | None:
        """Decide one plan time for all scopes; return why the schedule pauses here, if it does."""
        pause = None
        definition = self._standing.definition
        for scope, lane in list(self.lanes.items()):
            if scope in absent:
                continue
            decision = decide(definition.overlap, definition.failure, lane, self._now, self._max_attempts)
            if isinstance(decision, Pause):
                pause = decision.reason
                decision = Skip(f"{decision.reason}, so the schedule is paused", failure=True)
            elif isinstance(decision, Create) and (reason := self._refuse(scope, plan_time, decision)):
                decision = Skip(reason)
            run_id = self._new_id()
            eligible_at = eligible(self._standing, scope, plan_time)
            covered = (None, 0) if scope in newcomers else covering
            self.planned.append(Planned(run_id, scope, plan_time, eligible_at, decision, *covered))
            self.lanes[scope] = after_decision(lane, run_id, decision)
        return pause


def after_decision(lane: Lane, run_id: str, decision: Create | Skip) -> Lane:
    if isinstance(decision, Create):
        if not lane.live:
            return Lane((LiveRun(run_id),), lane.failed, lane.failures, lane.attempt, lane.finished_at, lane.skips)
        return lane.without(decision.supersedes).with_run(LiveRun(run_id), decision.after)
    return msgspec.structs.replace(lane, skips=lane.skips + 1) if decision.failure else lane


def eligible(standing: ScheduleState, scope: Scope, plan_time: int) -> int:
    """Return when a run may start, never before its plan time. Jitter is a hash: the same on every planner."""
    definition = standing.definition
    at = plan_time + definition.delay_micros
    if not definition.jitter:
        return at
    span = in_micros(definition.jitter)
    name = f"{standing.id}/{scope.kind}/{scope.id}/{plan_time}"
    return at + int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) % (span + 1)


def _followed(
    standing: ScheduleState, turn: _Turn, due: Due, cursor: int, fired: int, pause: str | None, now: int
) -> Tick:
    """Finish a tick of a schedule that repeats after its own runs.

    The end of the run just planned, or of the one that was in its way, names the next plan time.
    """
    if not turn.planned:
        over = standing.room == 0
        next_plan, next_at = (None, None) if over else (standing.next_plan, standing.next_at)
        return Tick((), (), turn.lanes, cursor, next_plan, next_at, fired)
    lane = next(iter(turn.lanes.values()))
    ended = pause is not None or (standing.definition.max_runs is not None and fired >= standing.definition.max_runs)
    awaits = lane.live[-1].id if lane.live and not ended else None
    next_plan = None if ended or awaits else following_plan(standing, now)
    next_at = None if next_plan is None else next_plan + standing.definition.delay_micros
    return Tick(tuple(turn.planned), due.missed, turn.lanes, cursor, next_plan, next_at, fired, pause, awaits)


def following_plan(standing: ScheduleState, ended_at: int) -> int | None:
    """Return the plan time that the end of a run names: a whole second, rounded up so that it is never early."""
    follows = standing.definition.follows
    assert follows is not None
    at = -(-(ended_at + in_micros(follows)) // SECOND) * SECOND
    return standing.times.next_allowed(max(at, standing.cursor + SECOND))
