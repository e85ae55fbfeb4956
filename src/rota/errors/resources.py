"""Errors of jobs, schedules, workers, quotas and notifications."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.errors.families import Conflict, Invalid, NotFound, Unavailable, did_you_mean

_SHOWN_CANDIDATES = 5


class UnknownJob(NotFound):
    """No worker has ever declared a job of that name."""

    code = "unknown-job"

    def __init__(self, name: str, known: Iterable[str] = (), *, otherwise: str | None = None) -> None:
        names = list(known)
        hint = did_you_mean(name, names) or "start a worker that declares it once: that stores it in the database"
        if otherwise is not None:
            hint = did_you_mean(name, names) or otherwise
        super().__init__(f"no job is called {name!r}", hint=hint)


class JobDisabled(Conflict):
    """The job does not accept runs."""

    code = "job-disabled"

    def __init__(self, name: str) -> None:
        super().__init__(f"job {name!r} is disabled", hint="declare it with enabled=True to let it run")


class JobRefuses(Conflict):
    """The job's state does not allow the command; the hint names those that it allows, of which update and delete are
    for data jobs."""

    code = "job-state"

    def __init__(self, name: str, verb: str, why: str, possible: Sequence[str]) -> None:
        super().__init__(f"cannot {verb} job {name!r}: it {why}", hint=f"possible now: {', '.join(possible)}")


class JobInUse(Conflict):
    """A schedule, a live run or a pipeline uses the job."""

    code = "job-in-use"

    def __init__(self, name: str, schedules: int, runs: int, pipelines: Sequence[str] = ()) -> None:
        hint = "--force (force=true) disables its schedules and cancels its runs"
        part = f", and is a part of {', '.join(map(repr, pipelines[:5]))}" if pipelines else ""
        users = [
            f"{count} {word}{'' if count == 1 else 's'}"
            for count, word in ((schedules, "schedule"), (runs, "live run"))
            if count
        ]
        used = f"is used by {' and '.join(users)}" if users else "is used"
        super().__init__(f"job {name!r} {used}{part}", hint=hint)


class NotSchedulable(Conflict):
    """The job is declared with `schedulable=False`."""

    code = "not-schedulable"

    def __init__(self, job: str) -> None:
        super().__init__(f"job {job!r} is declared as not schedulable")


class UnknownSchedule(NotFound):
    """There is no schedule of that name, or it was deleted."""

    code = "unknown-schedule"

    def __init__(
        self, name: str, known: Iterable[str] = (), *, otherwise: str = "`rota schedule ls` lists them"
    ) -> None:
        hint = did_you_mean(name, list(known)) or otherwise
        super().__init__(f"no schedule is called {name!r}", hint=hint)


class DuplicateSchedule(Conflict):
    """There is a schedule of that name already."""

    code = "duplicate-schedule"

    def __init__(self, name: str, *, hint: str = "edit it, or take another name") -> None:
        super().__init__(f"there is a schedule {name!r} already", hint=hint)


class Overlapping(Conflict):
    """The schedule's overlap policy forbids a run now."""

    code = "overlapping"

    def __init__(self, schedule: str, reason: str) -> None:
        super().__init__(f"schedule {schedule!r} was not triggered: {reason}", hint="force it, or wait")


class NotTriggered(Conflict):
    """A limit or a unique key prevents the run; unlike an overlap, it cannot be forced."""

    code = "not-triggered"

    def __init__(self, schedule: str, reason: str) -> None:
        hint = "try again when the conflicting runs have ended"
        super().__init__(f"schedule {schedule!r} was not triggered: {reason}", hint=hint)


class FollowingRing(Invalid):
    """Schedules that follow each other's jobs form a cycle, and would trigger each other for ever."""

    code = "following-ring"

    def __init__(self, schedule: str, path: Iterable[str]) -> None:
        super().__init__(
            f"schedule {schedule!r} would create a cycle: {' → '.join(path)}",
            hint="the jobs would start each other for ever; give one of them a trigger of its own",
        )


class UnreadableSchedule(Unavailable):
    """A newer version of rota wrote the schedule."""

    code = "unreadable-schedule"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"a schedule's definition cannot be read: {problem}", hint="a newer rota may have written it: upgrade"
        )


class ChangedMeanwhile(Conflict):
    """The object was changed since it was read: the `ETag` in `If-Match` is no longer current."""

    status, code = 412, "changed-meanwhile"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was changed meanwhile", hint="read it again, and repeat the change")


class UnknownWorker(NotFound):
    """No worker has this id or name."""

    code = "unknown-worker"

    def __init__(self, worker: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"no worker is called {worker!r}", hint=did_you_mean(worker, known))


class AmbiguousWorker(Conflict):
    """The shortened id matches more than one worker."""

    code = "ambiguous-worker"

    def __init__(self, part: str, candidates: Sequence[str]) -> None:
        some = ", ".join(candidates[:_SHOWN_CANDIDATES]) + (", …" if len(candidates) > _SHOWN_CANDIDATES else "")
        super().__init__(f"{part!r} is the beginning of more than one worker's id", hint=f"give more of it: {some}")


class UnknownQueue(NotFound):
    """No job names the queue, and it has no runs."""

    code = "unknown-queue"

    def __init__(self, queue: str, known: Iterable[str]) -> None:
        hint = did_you_mean(queue, known) or "`rota queue list` lists queues"
        super().__init__(f"there is no queue {queue!r:.80}", hint=f"{hint}; --force (force=true) for a new one")


class UnknownQuota(NotFound):
    """No quota is set for this scope."""

    code = "unknown-quota"

    def __init__(self, kind: str, id: str | None) -> None:
        of = f"each {kind!r}" if id is None else f"{kind}/{id}"
        super().__init__(f"no quota is set for {of}", hint="rota quota ls")


class UnknownAttention(NotFound):
    """Nothing of this kind needs attention."""

    code = "unknown-attention"

    def __init__(self, kind: str, subject: str | None) -> None:
        of = f" of {subject!r}" if subject else ""
        super().__init__(f"{kind!r}{of} does not need attention", hint="rota attention")


class KindPaused(Conflict):
    """The scope is paused by the quota of its kind, and cannot be resumed alone."""

    code = "kind-paused"

    def __init__(self, kind: str, scope: str) -> None:
        hint = f"set or delete the quota of the kind: rota quota update {kind}, rota quota delete {kind}"
        super().__init__(f"{scope} is paused with all scopes of kind {kind!r}, by the quota of that kind", hint=hint)


class UnknownLimit(NotFound):
    """The job or queue has no live limit."""

    code = "unknown-limit"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} {name!r} has no live limit", hint=f"rota {kind} ls")


class UnknownNotification(NotFound):
    """There is no notification of that name."""

    code = "unknown-notification"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"there is no notification {name!r}", hint=did_you_mean(name, known))


class NotExpected(NotFound):
    """The job or schedule has no expectations."""

    code = "not-expected"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} {name!r} has no expectations", hint="`rota expectation ls` lists all expectations")
