"""Everything rota raises: five families, each one HTTP status and one exit code.

    RotaError
    ├── NotFound        404   exit 4     UnknownJob, UnknownRun, UnknownSchedule, UnknownWorker, NotExpected,
    │                                    UnknownToken, UnknownQuota, UnknownNotification
    ├── Conflict        409   exit 6     AmbiguousRun, LeaseLost, RunIsFinal, RunNotFinal, NotCancellable, DuplicateRun,
    │                                    JobDisabled, NotRepeatable, NotSchedulable, DuplicateSchedule, Overlapping,
    │                                    NotTriggered, NothingToRetry, AlreadyRetried, BulkMismatch, LimitReached,
    │                                    QuotaExceeded, AmbiguousWorker, ChangedMeanwhile, AlreadyReported,
    │                                    NotHandedOver, NotAsked, JobInUse
    ├── Invalid         422   exit 2     BadPayload, BadDuration, BadTrigger, UnknownOption, UnknownStep,
    │                                    StepTwice, KeyReused, FollowingRing, BadConfig (exit 78)
    ├── Denied          403   exit 5     Forbidden, NotSignedIn, TooManyTries
    └── Unavailable     503   exit 69    DeadlineExceeded, UnreadableSchedule, SchemaOutdated (exit 78),
                                         StillRunning (exit 75)

A message is built in its class from facts, and carries a hint where there is something to do about it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

_SHOWN_CANDIDATES = 5


class RotaError(Exception):
    """The root of all errors raised by rota."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def within(self, what: str) -> Self:
        """The same, told of whom it is said; not twice."""
        if what not in self.message:
            self.message = f"{what}: {self.message}"
        return self

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class NotFound(RotaError):
    status, exit_code, code = 404, 4, "not-found"


class Conflict(RotaError):
    status, exit_code, code = 409, 6, "conflict"


class Invalid(RotaError):
    status, exit_code, code = 422, 2, "invalid"


class Denied(RotaError):
    status, exit_code, code = 403, 5, "denied"


class Unavailable(RotaError):
    status, exit_code, code = 503, 69, "unavailable"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the nearest known word, or the known words when they are few."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if 0 < len(names) <= 8:
        return "known: " + ", ".join(names)
    return None


class UnknownJob(NotFound):
    code = "unknown-job"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        names = list(known)
        hint = did_you_mean(name, names) or "start a worker that has it once, so that the database knows it"
        super().__init__(f"no job is called {name!r}", hint=hint)


class UnknownRun(NotFound):
    code = "unknown-run"

    def __init__(self, run_id: str) -> None:
        hint = "give the beginning or the end of an id; it may have been pruned; `rota run ls` lists runs"
        super().__init__(f"there is no run {run_id!r}", hint=hint)


class UnknownToken(NotFound):
    code = "unknown-token"

    def __init__(self, who: str, known: Iterable[str]) -> None:
        hint = did_you_mean(who, known) or "`rota token ls` lists them"
        super().__init__(f"no token is called {who!r:.80}", hint=hint)


class Forbidden(Denied):
    code = "forbidden"

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem, hint=hint)


class NotSignedIn(Denied):
    status, code = 401, "not-signed-in"

    def __init__(self, problem: str = "nobody is signed in") -> None:
        hint = "send Authorization: Bearer rota_…, a token from `rota token create`"
        super().__init__(problem, hint=hint)


class TooManyTries(Denied):
    status, code = 429, "too-many-tries"

    def __init__(self, seconds: float) -> None:
        super().__init__("too many wrong tokens came from this address", hint=f"try again in {seconds:.0f}s")
        self.seconds = seconds


class AmbiguousRun(Conflict):
    code = "ambiguous-run"

    def __init__(self, part: str, candidates: Sequence[str]) -> None:
        some = ", ".join(candidates[:_SHOWN_CANDIDATES]) + (", …" if len(candidates) > _SHOWN_CANDIDATES else "")
        super().__init__(f"{part!r} is the beginning or end of more than one run", hint=f"give more of the id: {some}")


class LeaseLost(Conflict):
    """The write came from a lease that is no longer the run's current one."""

    code = "stale-lease"

    def __init__(self, run_id: str, fence: int, state: str | None = None) -> None:
        hint = "stop: another attempt owns it" if state is None else f"stop: the run is {state}"
        super().__init__(f"fence {fence} of run {run_id} is not current any more", hint=hint)
        self.run_id = run_id
        self.fence = fence


class ChangedMeanwhile(Conflict):
    """Whoever changes something as they saw it wants to know that it is not like that any more."""

    status, code = 412, "changed-meanwhile"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was changed meanwhile", hint="look at it again, and decide anew")


class AlreadyReported(Conflict):
    """The attempt was ended before under the same fence, and otherwise."""

    code = "already-reported"

    def __init__(self, run_id: str, fence: int, outcome: str) -> None:
        super().__init__(f"run {run_id} was reported as {outcome} under fence {fence} already", hint="that stands")


class NotHandedOver(Conflict):
    code = "not-handed-over"

    def __init__(self, run_id: str, worker_id: str) -> None:
        told = f"run {run_id} is still in the hands of worker {worker_id}"
        super().__init__(told, hint="it is yours when its handler has ended: try again in a moment")


class NotAsked(Conflict):
    code = "not-asked"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"nobody asked run {run_id} to stop", hint="fail it instead, without a retry")


class RunIsFinal(Conflict):
    code = "run-is-final"

    def __init__(self, run_id: str, state: str, wanted: str) -> None:
        super().__init__(f"run {run_id} is {state} already and cannot be {wanted}", hint="a final run never changes")


class RunNotFinal(Conflict):
    code = "run-not-final"

    def __init__(self, run_id: str, state: str) -> None:
        hint = "wait until it has ended" if state == "cancelling" else "cancel it first, or wait until it has ended"
        super().__init__(f"run {run_id} is {state}; only a finished run can be retried", hint=hint)


class NotCancellable(Conflict):
    code = "not-cancellable"

    def __init__(self, run_id: str, job: str) -> None:
        super().__init__(f"run {run_id} has begun and job {job!r} does not support cancelling")


class DuplicateRun(Conflict):
    code = "duplicate-run"

    def __init__(self, job: str, holder: str) -> None:
        super().__init__(f"job {job!r} has a run with this unique key already: {holder}")
        self.holder = holder


class JobDisabled(Conflict):
    code = "job-disabled"

    def __init__(self, name: str) -> None:
        super().__init__(f"job {name!r} is disabled", hint="declare it with enabled=True to let it run")


class JobInUse(Conflict):
    code = "job-in-use"

    def __init__(self, name: str, schedules: int, runs: int) -> None:
        hint = "force it: its schedules are disabled then, and its runs cancelled"
        super().__init__(f"job {name!r} is needed by {schedules} schedules and {runs} live runs", hint=hint)


class NothingToRetry(Conflict):
    code = "nothing-to-retry"

    def __init__(self, job: str, run_id: str | None, state: str | None) -> None:
        """`state` is how the job's newest run ended, None while it goes on; without a run there is no `run_id`."""
        if run_id is None:
            super().__init__(f"job {job!r} has no run to retry", hint="enqueue one: `rota run add`")
        elif state is None:
            super().__init__(f"run {run_id} of job {job!r} has not ended", hint="wait until it has, or cancel it first")
        else:
            hint = f"to do it again all the same: `rota run retry {run_id}`"
            super().__init__(f"the newest run of job {job!r}, {run_id}, has {state}: it did not fail", hint=hint)


class AlreadyRetried(Conflict):
    """Said by retries of many; one run by its id may be retried as often as wanted."""

    code = "already-retried"

    def __init__(self, run_id: str, retry: str) -> None:
        super().__init__(f"run {run_id} was retried already, by run {retry}", hint="retry that one, if it failed")
        self.retry = retry


class BulkMismatch(Conflict):
    code = "bulk-mismatch"

    def __init__(self, expected: int, what: str = "runs") -> None:
        hint = "nothing was done; count again, and expect what you find"
        super().__init__(f"more {what} match than the {expected} that were expected", hint=hint)


class LimitReached(Conflict):
    code: ClassVar[str] = "limit-reached"

    def __init__(self, job: str, key: str, most: int, reason: str) -> None:
        super().__init__(f"job {job!r} takes no more runs now: {reason}", hint="try again when one of them has ended")
        self.key = key
        self.max = most


class QuotaExceeded(LimitReached):
    """As many of a scope's runs wait as may, over all jobs."""

    code = "quota-exceeded"


class NotRepeatable(Conflict):
    code = "not-repeatable"

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(f"job {name!r} is not repeatable and run {holder} has done it, or is doing it")
        self.holder = holder


class UnknownQuota(NotFound):
    code = "unknown-quota"

    def __init__(self, kind: str, id: str | None) -> None:
        of = f"each {kind!r}" if id is None else f"{kind}/{id}"
        super().__init__(f"no quota is set for {of}", hint="rota quota ls")


class UnknownWorker(NotFound):
    code = "unknown-worker"

    def __init__(self, worker: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"no worker is called {worker!r}", hint=did_you_mean(worker, known))


class AmbiguousWorker(Conflict):
    code = "ambiguous-worker"

    def __init__(self, part: str, candidates: Sequence[str]) -> None:
        some = ", ".join(candidates[:_SHOWN_CANDIDATES]) + (", …" if len(candidates) > _SHOWN_CANDIDATES else "")
        super().__init__(f"{part!r} is the beginning of more than one worker's id", hint=f"give more of it: {some}")


class UnknownSchedule(NotFound):
    code = "unknown-schedule"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        hint = did_you_mean(name, list(known)) or "`rota schedule ls` lists them"
        super().__init__(f"no schedule is called {name!r}", hint=hint)


class NotExpected(NotFound):
    code = "not-expected"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"nothing is expected of {kind} {name!r}", hint="rota expect ls tells of whom something is")


class DuplicateSchedule(Conflict):
    code = "duplicate-schedule"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name!r} already", hint="edit it, or take another name")


class NotSchedulable(Conflict):
    code = "not-schedulable"

    def __init__(self, job: str) -> None:
        super().__init__(f"job {job!r} is declared as not schedulable")


class Overlapping(Conflict):
    code = "overlapping"

    def __init__(self, schedule: str, reason: str) -> None:
        super().__init__(f"schedule {schedule!r} was not triggered: {reason}", hint="force it, or wait")


class NotTriggered(Conflict):
    """A limit or a unique key stands in the way; unlike an overlap, it cannot be forced."""

    code = "not-triggered"

    def __init__(self, schedule: str, reason: str) -> None:
        hint = "try again when the runs in its way have ended"
        super().__init__(f"schedule {schedule!r} was not triggered: {reason}", hint=hint)


class FollowingRing(Invalid):
    """Schedules that follow each other's jobs would never come to rest."""

    code = "following-ring"

    def __init__(self, schedule: str, path: Iterable[str]) -> None:
        super().__init__(
            f"schedule {schedule!r} would close a ring: {' → '.join(path)}",
            hint="each job would start the next for ever; let one of them run at its own times",
        )


class UnknownNotification(NotFound):
    code = "unknown-notification"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"there is no notification {name!r}", hint=did_you_mean(name, known))


class BadPayload(Invalid):
    """`path` leads to the value at fault: `$.user.age`."""

    code = "bad-payload"

    def __init__(self, path: str, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"the payload {problem}" if path == "$" else f"payload at {path}: {problem}", hint=hint)
        self.path = path
        self.problem = problem


class BadDuration(Invalid):
    code = "bad-duration"

    def __init__(self, text: object, problem: str = "is not a duration") -> None:
        super().__init__(f"{text!r} {problem}", hint='write a number and a unit: "90s", "15m", "6h", "1d"')


class BadTrigger(Invalid):
    """`field` is the part at fault: `minute`, `timezone`, `interval`."""

    code = "bad-trigger"

    def __init__(self, problem: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"{field}: {problem}" if field else problem, hint=hint)
        self.field = field


class BadConfig(Invalid):
    exit_code, code = 78, "bad-configuration"


class UnknownOption(Invalid):
    code = "unknown-option"

    def __init__(self, option: str, known: Iterable[str], *, where: str) -> None:
        super().__init__(f"{where} has no option {option!r}", hint=did_you_mean(option, known))


class UnknownStep(Invalid):
    code = "unknown-step"

    def __init__(self, step: str, known: Iterable[str]) -> None:
        names = list(known)
        known_ones = f"there is {', '.join(map(repr, names[:10]))}" if names else "there are no steps"
        hint = did_you_mean(step, names) or known_ones
        super().__init__(f"there is no step {step!r}", hint=hint)


class StepTwice(Invalid):
    code = "step-twice"

    def __init__(self, step: str) -> None:
        super().__init__(
            f"step {step!r} was opened already in this attempt", hint="give each its own id, such as page-1, page-2"
        )


class KeyReused(Invalid):
    code = "idempotency-key-reused"

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used for another request", hint="use a new key for new content")


class SchemaOutdated(Unavailable):
    exit_code, code = 78, "schema-outdated"

    def __init__(self, found: int, wanted: int) -> None:
        if found > wanted:
            super().__init__(
                f"the database is at schema {found}, this rota knows {wanted}", hint="install a newer rota"
            )
        else:
            super().__init__(f"the database is at schema {found}, this rota needs {wanted}", hint="run `rota migrate`")


class UnreadableSchedule(Unavailable):
    code = "unreadable-schedule"

    def __init__(self, problem: str) -> None:
        super().__init__(f"a schedule's definition cannot be read: {problem}", hint="written by a newer rota? upgrade")


class DeadlineExceeded(Unavailable):
    code = "deadline"

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} did not finish within {seconds:g}s")


class StillRunning(Unavailable):
    """Waiting for a run took longer than the caller wanted."""

    exit_code, code = 75, "still-running"

    def __init__(self, run_id: str, state: str) -> None:
        super().__init__(f"run {run_id} is still {state}")
        self.run_id = run_id
        self.state = state
