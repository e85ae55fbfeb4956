"""Assumptions and result of a simulation: what is taken for granted, what there is at its start, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Gate
from rota.core.planning.overlap_and_failure import Lane
from rota.core.planning.simulated_limits import HeldKey, StandingLimit
from rota.core.planning.tick import ScheduleState
from rota.errors import Invalid
from rota.values.durations import in_micros
from rota.values.scope import Scope

KINDS = ("run", "failed", "skipped", "missed", "covered", "cancelled", "paused")


class Attempt(msgspec.Struct, frozen=True):
    """Attempt of a simulated run; a run that was live at the start has no plan time."""

    number: int
    scope: Scope
    plan_time: int | None
    attempt: int


class Assumptions(msgspec.Struct, frozen=True, kw_only=True):
    """Assumptions of a simulation; instants are microseconds, runs are counted from 1, those live at the start first.

    An attempt lasts `duration`, or what that says of its run's number. Each `fail_every`th run fails, and those of the
    plan times in `fail_at`, with all their attempts. During `outages` (from, to) runs go on, but nobody plans.
    `workers` is how many runs are executed at once at most; None: there is always a worker free. `job` has limits and
    keys; None: it has none. `quotas`: those of scopes. An attempt that lasts longer than `timeout` fails then.
    """

    duration: timedelta | Callable[[int], timedelta] = timedelta(seconds=1)
    fail_every: int | None = None
    fail_at: frozenset[int] = frozenset()
    outages: tuple[tuple[int, int], ...] = ()
    workers: int | None = None
    job: JobDefinition | None = None
    quotas: Mapping[Scope, tuple[Gate, ...]] = {}
    timeout: timedelta | None = None

    def __post_init__(self) -> None:
        if isinstance(self.duration, timedelta) and self.duration < timedelta(0):
            raise Invalid("a simulated run cannot last less than nothing", hint='duration="30s"')
        if self.fail_every is not None and self.fail_every < 1:
            raise Invalid(f"fail_every must be 1 or more, not {self.fail_every}", hint="1: every run fails")
        if self.workers is not None and self.workers < 1:
            raise Invalid(f"workers must be 1 or more, not {self.workers}", hint="leave it out: always one is free")
        if any(end < begin for begin, end in self.outages):
            raise Invalid("an outage ends before it begins")

    def lasts(self, attempt: Attempt) -> int:
        duration = self.duration
        return max(0, in_micros(duration if isinstance(duration, timedelta) else duration(attempt.number)))

    def fails(self, attempt: Attempt) -> bool:
        every = self.fail_every
        return attempt.plan_time in self.fail_at or (every is not None and attempt.number % every == 0)

    def outcome(self, attempt: Attempt) -> tuple[int, bool]:
        """Return how long an attempt takes, and whether it fails."""
        lasts, limit = self.lasts(attempt), None if self.timeout is None else in_micros(self.timeout)
        return (limit, True) if limit is not None and lasts > limit else (lasts, self.fails(attempt))

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


class StandingRun(msgspec.Struct, frozen=True, kw_only=True):
    """Run that is live at the start of a simulation, of this schedule or under the same limits.

    `attempt`: the current one, or the next. `last`: the attempt after which there is no retry; None: as the retry
    policy says. `claimed_at`: since when somebody has it.
    """

    id: str
    scope: Scope
    run_at: int
    attempt: int = 1
    last: int | None = None
    begun: bool = False
    claimed_at: int | None = None
    stopping: bool = False
    after: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    plan_time: int | None = None


class Beginning(msgspec.Struct, frozen=True):
    """State at the start of a simulation: lanes, live runs, keys that are held, begins that rates count, and limits.

    A live run of a lane that is not among `runs` is due, or began just now. `awaits`: the run whose end names the next
    plan time. `inactive`: why the schedule is not planned; until `resumes_at`, if that is known.
    """

    lanes: Mapping[Scope, Lane] = {}
    runs: tuple[StandingRun, ...] = ()
    keys: Mapping[str, HeldKey] = {}
    starts: Mapping[str, tuple[int, ...]] = {}
    awaits: str | None = None
    inactive: str | None = None
    resumes_at: int | None = None
    limits: tuple[StandingLimit, ...] = ()


class Present(msgspec.Struct, frozen=True):
    """State of a schedule now, as planning would find it, the quotas of its scopes, and how long (µs) the last runs of
    its job took."""

    now: int
    state: ScheduleState
    scopes: tuple[Scope, ...]
    beginning: Beginning
    quotas: Mapping[Scope, tuple[Gate, ...]]
    durations: tuple[int, ...] = ()
