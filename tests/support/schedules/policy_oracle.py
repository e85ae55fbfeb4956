"""Oracle for the policies, one plan time after the other, as first defined: it shares no code with rota.

What a plan time gets is decided in this order: overlap, failure, concurrency. All runs that are not over count as the
previous ones, not only the last that runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

OVERLAPS = {"ALLOW": "allow", "SKIP": "skip", "CANCEL_PREV": "cancel_previous", "PARALLEL": "parallel"}
FAILURES = {"RUN_NEW": "run_new", "SKIP": "skip", "RETRY": "retry"}
CONCURRENCIES = {"SKIP": "skip", "QUEUE": "queue"}
LIMITED = 3
MISFIRES: dict[str, object] = {
    "FIRE_NOW": {"mode": "all", "keep": 100},
    "SKIP": "none",
    "CATCH_UP_LIMITED": {"mode": "all", "keep": LIMITED},
}
MOST_ATTEMPTS = 3


@dataclass(frozen=True)
class Case:
    """A case in the words of the page that defines the policies."""

    overlap: str
    failure: str
    concurrency: str
    misfire: str

    @property
    def name(self) -> str:
        return "-".join((self.overlap, self.failure, self.concurrency, self.misfire)).lower()

    @property
    def options(self) -> dict[str, object]:
        """Return the case as rota's options, without the limit."""
        return {
            "overlap": OVERLAPS[self.overlap],
            "failure": FAILURES[self.failure],
            "catch_up": MISFIRES[self.misfire],
        }


CASES = [Case(*words) for words in product(OVERLAPS, FAILURES, CONCURRENCIES, MISFIRES)]


@dataclass(frozen=True)
class Story:
    """A story, in seconds: a plan time each `step`; the n-th run takes `lasts(n)`, and fails if `fails(n)`.

    Nobody plans during `away`. `retries` has the number and the delay of a run's own retries.
    """

    lasts: Callable[[int], int]
    fails: Callable[[int], bool]
    step: int = 5
    until: int = 75
    away: tuple[int, int] = (13, 40)
    retries: tuple[int, ...] = ()

    def scans(self) -> Iterator[int]:
        return (now for now in range(1, self.until + 1) if not self.away[0] <= now < self.away[1])


@dataclass
class Told:
    """The fate of one plan time: run, failed, cancelled, skipped; `began` and `ended` are None if it did not."""

    plan_time: int
    fate: str = "run"
    attempt: int = 0
    began: int | None = None
    ended: int | None = None


@dataclass
class _Run:
    told: Told
    number: int
    limited: bool = True
    waits_for: list["_Run"] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return self.told.ended is not None

    @property
    def running(self) -> bool:
        return self.told.began is not None and not self.over


@dataclass
class _Task:
    case: Case
    story: Story
    runs: list[_Run] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    last: Told | None = None
    forgiven: bool = False
    made: int = 0

    def end(self, now: int) -> None:
        for run in self.runs:
            if run.running and run.told.began is not None and run.told.began + self.story.lasts(run.number) == now:
                run.told.ended = now
                run.told.fate = "failed" if self.story.fails(run.number) else "run"
                self.last, self.forgiven = run.told, False

    def fire(self, plan_time: int, now: int) -> None:
        case, live = self.case, [run for run in self.runs if not run.over]
        told = Told(plan_time)
        self.told.append(told)
        if live and case.overlap == "SKIP":
            told.fate = "skipped"
            return
        failed = self.last is not None and self.last.fate == "failed"
        if failed and case.failure == "SKIP" and not self.forgiven:
            told.fate, self.forgiven = "skipped", True
            return
        cancels = live if case.overlap == "CANCEL_PREV" else []
        ignored = bool(live) and case.overlap == "PARALLEL"
        counted = [run for run in live if run.limited and run not in cancels]
        if counted and case.concurrency == "SKIP" and not ignored:
            told.fate = "skipped"
            return
        told.attempt = 1
        if case.failure == "RETRY" and failed and self.last is not None and self.last.attempt < MOST_ATTEMPTS:
            told.attempt = self.last.attempt + 1
        for run in cancels:
            run.told.fate, run.told.ended = ("cancelled" if run.running else "skipped"), now
            if run.told.fate == "cancelled":
                self.last, self.forgiven = run.told, False
        self.made += 1
        self.runs.append(_Run(told, self.made, limited=not ignored))

    def begin(self, now: int) -> None:
        for run in self.runs:
            full = run.limited and any(other.running and other.limited for other in self.runs)
            if run.told.began is None and not run.over and not full:
                run.told.began = now


def expected(case: Case, story: Story) -> list[Told]:
    """Return what each plan time gets, second by second, without those that nobody caught up with."""
    task, seen = _Task(case, story), 0
    for now in range(1, story.until + 1):
        task.end(now)
        if not story.away[0] <= now < story.away[1]:
            missed = [at for at in range(seen + 1, now + 1) if at % story.step == 0]
            kept = {"FIRE_NOW": missed, "SKIP": missed[-1:], "CATCH_UP_LIMITED": missed[-LIMITED:]}[case.misfire]
            for plan_time in kept:
                task.fire(plan_time, now)
            seen = now
        task.begin(now)
    return task.told


def as_told(stories: list[Told]) -> list[str]:
    """Describe plan times, without details that a skipped one or an unfinished run does not have."""
    return [_brief(one) for one in stories]


def _brief(one: Told) -> str:
    if one.fate == "skipped":
        return f"{one.plan_time}: skipped"
    return f"{one.plan_time}: {one.fate} {one.began}..{one.ended}" + (f" at {one.attempt}" if one.ended else "")


STORIES = {
    "long": Story(lasts=lambda _: 8, fails=lambda _: False),
    "mixed": Story(lasts=lambda n: (8, 3, 12)[n % 3], fails=lambda n: n % 2 == 0),
    "failing": Story(lasts=lambda _: 3, fails=lambda n: n % 5 != 0),
}
