"""Explain why a run is in its state."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.core.ledger.explain_plan_time import Explanation, written
from rota.core.limits.limits import is_schedules, measure, title
from rota.core.limits.live import LiveLimit
from rota.core.runs.admission import Hold
from rota.core.runs.dependencies import NEEDS_SUCCESS, SUCCESS_OR_SKIP
from rota.core.runs.run import Attempt, Run
from rota.core.schedules.job_triggers import because, cause_of
from rota.core.states import RunState
from rota.core.workers.replicas import Replica
from rota.core.workers.requirements import NOTHING, Requirements, meets
from rota.core.workers.worker import WorkerState, name_of
from rota.values.durations import age, span

_SHOWN = 5


class Paused(msgspec.Struct, frozen=True):
    """Pause of a job, a queue or a scope by an operator, or cancel of a job (`word`). Older programs did not note when
    they paused a scope.
    """

    kind: str
    name: str
    at: datetime | None
    by: str | None
    reason: str | None
    word: str = "paused"


class LimitFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Limit and how much of it is used.

    `held`: slots in use; under a rate, attempts begun within the `period` (µs), and `opens_at` is when the next may
    begin.
    """

    key: str
    max: int
    held: int
    period: int | None = None
    opens_at: datetime | None = None
    live: LiveLimit | None = None
    """The limit as an operator set it, if it is a live one."""

    @property
    def is_pause(self) -> bool:
        """Return whether it is there because its scope is paused."""
        return self.max == 0


class LiveWorker(msgspec.Struct, frozen=True):
    id: str
    queues: tuple[str, ...]
    jobs: tuple[str, ...]
    state: WorkerState = WorkerState.WORKING
    labels: tuple[str, ...] = ()
    app_version: str = ""

    @property
    def name(self) -> str:
        return name_of(self.id)

    @property
    def claims(self) -> bool:
        """Return whether it claims runs; one that drains or stops does not."""
        return self.state is WorkerState.WORKING


class PartFacts(msgspec.Struct, frozen=True):
    """Current part of a pipeline run: number `no` of `of`, and the queue and job that workers claim it by."""

    step: str
    job: str
    queue: str
    no: int
    of: int


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a run.

    `hold` is the column of `rota_ready`. `waits_for`: (run, its final state or None, `rota_wait.kind`). `inputs`:
    arguments that are results, by the run that they come from. `awaited_by`:
    runs that wait for it. `before`: how many runs of its queue are claimed first. `shielded`: it is in a step that
    cannot be cancelled. `step`: the step whose external end it waits for. `for_worker`: the name of the only worker
    that may have it. If the run conducts replicas, `limits` are those of its waiting replicas. `siblings`: if it is a
    replica, all replicas of the same run, itself among them.

    `walled`: the reader is restricted to one scope, and sees runs of that scope only; `apart`: it waits for others.
    """

    run: Run
    now: datetime
    hold: int | None = None
    waits_for: Sequence[tuple[str, str | None, int]] = ()
    inputs: Mapping[str, Sequence[str]] = {}
    awaited_by: Sequence[str] = ()
    limits: Sequence[LimitFacts] = ()
    pauses: Sequence[Paused] = ()
    workers: Sequence[LiveWorker] = ()
    before: int = 0
    attempts: Sequence[Attempt] = ()
    cancelled_by: str | None = None
    lease_until: datetime | None = None
    cancel_until: datetime | None = None
    shielded: bool = False
    step: str | None = None
    requirements: Requirements = NOTHING
    replicas: Sequence[Replica] = ()
    siblings: Sequence[Replica] = ()
    for_worker: str | None = None
    part: PartFacts | None = None
    walled: bool = False
    apart: bool = False

    @property
    def claimed_as(self) -> tuple[str, str]:
        """Job and queue by which workers claim it."""
        return (self.run.job, self.run.queue) if self.part is None else (self.part.job, self.part.queue)


def explain_run(facts: RunFacts) -> Explanation:
    run = facts.run
    more: dict[str, Any] = {}
    if run.state is RunState.SCHEDULED:
        words = _scheduled(facts, more)
    elif run.state is RunState.QUEUED:
        words = _queued(facts, more)
    elif facts.replicas and not run.state.is_final:
        words = _conducting(facts, more)
    elif run.state in (RunState.RUNNING, RunState.CANCELLING, RunState.WAITING):
        words = _running(facts, more)
    else:
        words = _ended(facts)
    if facts.awaited_by:
        more["awaited_by"] = list(facts.awaited_by)
        single = len(facts.awaited_by) == 1
        words.append(f"{_runs(facts.awaited_by).capitalize()} {'waits' if single else 'wait'} for it.")
    if (at := facts.part) is not None and not run.state.is_final:
        words = [f"It is at step {at.step!r}, {at.no} of {at.of}, which is job {at.job!r}.", *words]
        more["part"] = msgspec.to_builtins(at)
    cause = cause_of(run.metadata)
    if cause is not None:
        words = [*words, f"Its schedule {run.schedule!r} made it {because(cause)}."]
        more["triggered_by"] = msgspec.to_builtins(cause)
    common = {
        "run_id": run.id,
        "job": run.job,
        "queue": run.queue,
        "attempt": run.attempt,
        "max_attempts": run.max_attempts,
        "reason": run.reason,
    }
    return Explanation(verdict=run.state.value, words=tuple(words), facts={**common, **more})


def _scheduled(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    run = facts.run
    if facts.hold == Hold.BLOCKED:
        return _waiting(facts, more)
    more["run_at"] = written(run.run_at)
    when = f"{written(run.run_at)} ({age(run.run_at, facts.now)})"
    if run.run_at <= facts.now and facts.hold == Hold.PARENT:
        waits = [f"It was due at {when}: it begins as soon as there are workers for its replicas."]
        return waits + _paused(facts, more) + _workers(facts, more)
    if run.run_at <= facts.now:
        return [f"It was due at {when}: it will be queued within a second if a server or worker is alive."]
    if run.attempt and facts.attempts:
        last = facts.attempts[-1]
        how = "" if last.outcome is None else f", which {_OUTCOMES.get(last.outcome.value, last.outcome.value)}"
        why = f": {last.error.type}: {last.error.message}" if last.error else ""
        words = f"It waits after attempt {run.attempt} of {run.max_attempts}{how}{why}."
        return [words, f"The next attempt is due at {when}."]
    return [f"It is due at {when}."]


def _waiting(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    live = [(id, kind) for id, state, kind in facts.waits_for if state is None]
    more["waits_for"] = [id for id, _ in live]
    if facts.apart and not live:
        return ["It waits for runs of other scopes."]
    if not live:
        return ["The runs that it waited for have ended: it will be queued within seconds."]
    words = []
    for event, ids in (
        ("the end", [id for id, kind in live if kind not in NEEDS_SUCCESS]),
        ("the success", [id for id, kind in live if kind in NEEDS_SUCCESS]),
    ):
        words += [f"It waits for {event} of {_runs(ids)}."] if ids else []
    skipped = [kind == SUCCESS_OR_SKIP for _, kind in live if kind in NEEDS_SUCCESS]
    if skipped:
        end = "skipped" if all(skipped) else "skipped or cancelled" if any(skipped) else "cancelled"
        words.append(f"If {'that' if len(skipped) == 1 else 'one of them'} does not succeed, it is {end}.")
    return words + _inputs(facts, more)


def _inputs(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    if not facts.inputs:
        return []
    more["inputs"] = {id: list(arguments) for id, arguments in facts.inputs.items()}
    shown = [f"{', '.join(arguments)} from run {id}" for id, arguments in facts.inputs.items()][:_SHOWN]
    return [f"It takes results as arguments: {'; '.join(shown)}{'; …' if len(facts.inputs) > _SHOWN else ''}."]


def _runs(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:_SHOWN]) + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")
    return f"{'run' if len(ids) == 1 else 'runs'} {shown}"


_OUTCOMES = {
    "failed": "failed",
    "timed_out": "timed out",
    "lost": "was lost with its worker",
    "snoozed": "put itself off",
    "handed_back": "was handed back",
    "cancelled": "was cancelled",
}


def _queued(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    words = _paused(facts, more) + _limited(facts, more) + _workers(facts, more)
    more["before"] = facts.before
    if facts.before:
        where = "queue and scope" if facts.walled else "queue"
        come = f"run of its {where} comes" if facts.before == 1 else f"runs of its {where} come"
        words.append(f"{facts.before} {come} before it.")
    if not words and facts.walled:
        words.append("Nothing of its scope holds it back: a free worker takes it when it is its turn.")
    if not words:
        words.append("Nothing holds it back: the next free worker takes it.")
    return words


def _paused(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    words = []
    for pause in facts.pauses:
        by, why = f" by {pause.by}" if pause.by else "", f": {pause.reason}" if pause.reason else ""
        since = "" if pause.at is None else f" since {written(pause.at)}"
        words.append(f"Its {pause.kind} {pause.name!r} is {pause.word}{by}{since}{why}.")
    more["paused"] = [f"{pause.kind} {pause.name}" for pause in facts.pauses]
    return words


def _limited(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    more["limits"] = msgspec.to_builtins(list(facts.limits))
    full = [limit for limit in facts.limits if limit.held >= limit.max and not limit.is_pause]
    return [_full(limit, facts.run.schedule) for limit in full]


def _full(limit: LimitFacts, schedule: str | None) -> str:
    name = title(limit.key, schedule if is_schedules(limit.key) else None)
    name = name[0].upper() + name[1:]
    if limit.live is not None:
        name = _live(limit.key, limit.live)
    if limit.period is None:
        return f"{name} is full: {limit.held} of {limit.max} slots are in use."
    opens = "" if limit.opens_at is None else f", next at {written(limit.opens_at)}"
    return f"{name} is reached: {measure(limit.max, limit.period)}{opens}."


def _live(key: str, limit: LiveLimit) -> str:
    """Describe a live limit: whose it is, who set it, since when and why."""
    kind, _, name = key.partition("live:")[2].partition(":")
    by, since = f" by {limit.by}" if limit.by else "", f" since {written(limit.since)}" if limit.since else ""
    until = f" until {written(limit.until)}" if limit.until else ""
    why = f": {limit.reason}" if limit.reason else ""
    return f"Its {kind} {name!r} is limited to {limit.words}{by}{since}{until}{why}. The limit"


def _workers(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    """Explain why no worker takes it; empty if there is one that does."""
    if facts.for_worker is not None:
        return _worker(facts, facts.for_worker, "It")
    alive, (job, queue) = facts.workers, facts.claimed_as
    able = [worker for worker in alive if queue in worker.queues]
    knowing = [worker for worker in able if job in worker.jobs]
    claiming = [worker for worker in knowing if worker.claims]
    fit = [worker for worker in claiming if meets(worker, facts.requirements)]
    more["workers"] = [worker.id for worker in fit[:_SHOWN]]
    more |= {"requirements": msgspec.to_builtins(facts.requirements)} if facts.requirements else {}
    if fit:
        return _too_few(facts.replicas or facts.siblings, {worker.name for worker in fit})
    if claiming:
        return [f"No live worker meets its requirements: {facts.requirements}."]
    if not alive:
        return ["No worker is alive: start one with `rota worker`."]
    if not able:
        none = f"None of the {len(alive)} live workers takes"
        who = "The only live worker does not take" if len(alive) == 1 else none
        return [f"{who} runs of queue {queue!r}."]
    if not knowing:
        return [f"No worker of queue {queue!r} knows job {job!r}."]
    return [_claims_nothing(worker) for worker in knowing[:_SHOWN]]


def _worker(facts: RunFacts, name: str, replica: str) -> list[str]:
    """Explain why the only worker that may have a replica does not take it. Requirements were met then."""
    alive, (job, queue) = [worker for worker in facts.workers if worker.name == name], facts.claimed_as
    if not alive:
        return [f"{replica} is the replica of worker {name!r}, which is not alive."]
    able = [worker for worker in alive if queue in worker.queues]
    if not able:
        return [f"{replica} is the replica of worker {name!r}, which does not take runs of queue {queue!r}."]
    knowing = [worker for worker in able if job in worker.jobs]
    if not knowing:
        return [f"{replica} is the replica of worker {name!r}, which does not know job {job!r}."]
    return [] if any(worker.claims for worker in knowing) else [_claims_nothing(knowing[0])]


def _too_few(replicas: Sequence[Replica], fit: Collection[str]) -> list[str]:
    """Explain that more replicas of a run wait than workers are left for them; those that are `fit` may have one."""
    counted = [replica for replica in replicas if replica.counts]
    waiting = sum(replica.state is RunState.QUEUED and replica.worker is None for replica in counted)
    free = len({*fit} - {replica.worker for replica in counted})
    if waiting <= free:
        return []
    wait = (
        "1 replica of the run waits for a worker" if waiting == 1 else f"{waiting} replicas of the run wait for workers"
    )
    take = {0: "no live worker", 1: "only 1 live worker"}.get(free, f"only {free} live workers")
    missing = "1 more is" if waiting - free == 1 else f"{waiting - free} more are"
    return [f"{wait} without one, and {take} can take one: {missing} needed."]


def _claims_nothing(worker: LiveWorker) -> str:
    way_out = f": `rota workers resume {worker.id}`" if worker.state is WorkerState.DRAINING else ""
    return f"Worker {worker.id} would take it, but is {worker.state.value}{way_out}."


def _conducting(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    run, counted = facts.run, [replica for replica in facts.replicas if replica.counts]
    more["replicas"] = {replica.run_id: replica.state.value for replica in counted}
    since = run.started_at or run.run_at
    words = [f"It began at {written(since)} ({age(since, facts.now)}) on several workers, with one replica on each."]
    for replica in counted[:_SHOWN]:
        whose = f"worker {replica.worker}" if replica.worker else "any worker that has none"
        why = f": {replica.error}" if replica.error else ""
        words.append(f"Replica {replica.run_id} for {whose} is {replica.state.value}{why}.")
    words += [f"There are {len(counted) - _SHOWN} more."] if len(counted) > _SHOWN else []
    queued = [replica for replica in counted if replica.state is RunState.QUEUED]
    if queued:
        words += _paused(facts, more) + _limited(facts, more)
    if any(replica.worker is None for replica in queued):
        words += _workers(facts, more)
    for replica in [replica for replica in queued if replica.worker is not None][:_SHOWN]:
        words += _worker(facts, str(replica.worker), f"Run {replica.run_id}")
    if run.state is RunState.CANCELLING:
        by, why = f" by {facts.cancelled_by}" if facts.cancelled_by else "", f": {run.reason}" if run.reason else ""
        words.append(f"It was asked to stop{by}{why}: it ends when its last replica has ended.")
    return words


def _running(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    run = facts.run
    since = run.started_at or run.run_at
    attempt = f"attempt {run.attempt} of {run.max_attempts}"
    words = [f"Worker {run.worker_id} has held it since {written(since)} ({age(since, facts.now)}): {attempt}."]
    more |= {"worker_id": run.worker_id, "since": written(since)}
    if run.wait_until is not None:
        words = _external(facts, more)
    if facts.lease_until is not None:
        more["lease_until"] = written(facts.lease_until)
        if facts.lease_until < facts.now:
            late = span(facts.now - facts.lease_until)
            words.append(f"Its lease expired {late} ago without a heartbeat: it will be taken away from the worker.")
    if run.state is RunState.CANCELLING:
        more["cancelled_by"] = facts.cancelled_by
        by, why = f" by {facts.cancelled_by}" if facts.cancelled_by else "", f": {run.reason}" if run.reason else ""
        words.append(f"It was asked to stop{by}{why}.")
        more["shielded"] = facts.shielded
        if facts.shielded:
            words.append("It is in a step that cannot be cancelled: that finishes first, then its grace period begins.")
        elif facts.cancel_until is not None:
            words.append(f"If it does not stop, it is ended at {written(facts.cancel_until)}.")
    return words


def _external(facts: RunFacts, more: dict[str, Any]) -> list[str]:
    """Explain a run that was handed over: no worker of ours holds it."""
    run = facts.run
    assert run.wait_until is not None
    since = run.wait_since or run.started_at or run.run_at
    more |= {"since": written(since), "wait_until": written(run.wait_until), "fence": run.fence, "step": facts.step}
    subject = "it" if facts.step is None else f"its step {facts.step!r}"
    when = f"{written(since)} ({age(since, facts.now)})"
    words = [
        f"Worker {run.worker_id} handed it over at {when}.",
        f"It waits for an external worker to end {subject}, under fence {run.fence}.",
    ]
    if run.wait_until < facts.now:
        words.append(f"It timed out at {written(run.wait_until)}: the attempt will be ended within seconds.")
    else:
        words.append(
            f"If nobody does, attempt {run.attempt} of {run.max_attempts} times out at {written(run.wait_until)}."
        )
    return words


def _ended(facts: RunFacts) -> list[str]:
    run = facts.run
    assert run.finished_at is not None
    at = written(run.finished_at)
    why = f": {run.reason}" if run.reason else ""
    error = f": {run.error.type}: {run.error.message}" if run.error else ""
    attempts = f"attempt {run.attempt} of {run.max_attempts}"
    match run.state:
        case RunState.SUCCEEDED:
            took = span(run.finished_at - run.started_at) if run.started_at else span(timedelta(0))
            if run.worker_id is None:  # only its replicas were claimed
                return [f"It succeeded at {at} on several workers, after {took}."]
            return [f"It succeeded at {at} on worker {run.worker_id}, in {attempts}, after {took}."]
        case RunState.SKIPPED:
            return [f"It was skipped at {at}{why}."]
        case RunState.CANCELLED:
            by = f" by {facts.cancelled_by}" if facts.cancelled_by else ""
            begun = "" if run.attempt else " It never began."
            return [f"It was cancelled{by} at {at}{why}.{begun}"]
        case RunState.EXPIRED:
            return [f"Its worker was lost, and it must not run again: it ended at {at} in {attempts}{error}."]
        case RunState.TIMED_OUT:
            return [f"It exceeded its timeout: {attempts} timed out at {at}{error}."]
    last = "that was the last attempt" if run.attempt >= run.max_attempts else "it is not retried"
    return [f"It failed at {at} in {attempts}{error}.", f"{last.capitalize()}."]
