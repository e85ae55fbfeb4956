"""Rules of attention: pure functions of facts, each of which yields the items of one kind or a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

import msgspec

from rota.core.limits.limits import title
from rota.core.monitoring.attention import PROBLEM, WARNING, Action, Attention, item, schedule_action
from rota.core.monitoring.attention_facts import Backlog, Delivery, Facts, LongRun, QueueDepth
from rota.core.monitoring.doctor import (
    JOBS_HINT,
    MESSENGER_HINT,
    OK,
    REAPER_HINT,
    OperatorPause,
    check_clock,
    held_words,
    many,
    planner_hint,
    queues_hint,
    resume_hint,
    unknown_jobs,
    unserved_queues,
    why_overdue,
)
from rota.errors import DatabaseCopied
from rota.values.durations import span
from rota.values.instants import instant, micros_at
from rota.values.scope import Scope, scope_text

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
LATE = 10 * SECOND
"""Microseconds after its due time from which a run that has not begun is late."""
IN_A_ROW = 3
"""Failures in a row from which a schedule is failing."""
SLOWER = 3
"""Times its job's p95 from which a run is slow."""
ENOUGH = 20
"""Runs of a job's week, or last runs of it, that say something about the next one."""
SLOW_FROM = 10 * SECOND
"""Runs that are shorter are not called slow."""
OFTEN, FAR_ABOVE, UNHEARD = 0.2, 3, 0.5
"""Share of failures from which a job's is high, times its week's share, and the share of a job without a week."""
LAST_RUNS = 50
"""Last runs of a job of which the share is computed."""
LONG_QUEUE, GROWN = 100, 2
"""Runs from which a queue is long, and times its depth half an hour before."""
STARVED = 15 * MINUTE
SKIPPED_OFTEN = 0.1
"""Share of a day's plan times from which skipped ones are told of: of an overlap policy, a few are wanted."""
_NAMED = 3


def items_of(facts: Facts) -> Iterator[Attention]:
    """Yield every item, snoozed or not."""
    for rule in (
        _database,
        _overdue, _failing, _missed, _skipped, _stuck, _lingering, _gone, _unserved, _unknown, _failure_rates, _slow,
        _growing, _starved, _unsent, _refused, _breached, _paused, _paused_schedules, _environment,
    ):  # fmt: skip
        yield from rule(facts)


def backlogs(backlog: Sequence[Backlog], of: str) -> dict[str, tuple[int, int]]:
    """Sum the backlog by `queue` or by `job`: number of runs, and the due time of the oldest."""
    counted: dict[str, tuple[int, int]] = {}
    for row in backlog:
        name = getattr(row, of)
        runs, oldest = counted.get(name, (0, row.oldest))
        counted[name] = runs + row.runs, min(oldest, row.oldest)
    return counted


def _overdue(facts: Facts) -> Iterator[Attention]:
    symptoms = facts.symptoms
    for schedule in symptoms.overdue:
        text = f"schedule {schedule.name} is overdue {why_overdue(schedule, symptoms)}"
        yield item("schedule_overdue", schedule.name, schedule.next_at, text, hint=planner_hint(symptoms, [schedule]))


def _failing(facts: Facts) -> Iterator[Attention]:
    for lane in facts.failing:
        if lane.failures < IN_A_ROW:
            continue
        scope = None if lane.scope_kind == "global" else scope_text(Scope(lane.scope_kind, lane.scope_id))
        of = f" for {scope}" if scope else ""
        why = f": {lane.error}" if lane.error else ""
        text = f"the last {lane.failures} runs of schedule {lane.schedule}{of} failed{why}"
        yield item(
            "schedule_failing", _lane_subject(lane.schedule, scope), lane.since, text,
            scope=scope, weight=lane.failures, action=schedule_action("trigger", lane.schedule),
            hint=f"rota run ls --schedule {quote(lane.schedule)} --state failed",
        )  # fmt: skip


def _lane_subject(schedule: str, scope: str | None) -> str:
    return schedule if scope is None else f"{schedule} {scope}"


def _missed(facts: Facts) -> Iterator[Attention]:
    for missed in facts.missed:
        times = many(missed.count, "plan time", "plan times")
        text = f"schedule {missed.schedule} missed {times}: {missed.reason}"
        first, last = _written(missed.first), _written(missed.last)
        action = schedule_action(
            "backfill", missed.schedule, f"--from {first} --to {last}", **{"from": first, "to": last}
        )
        yield item("schedule_missed", missed.schedule, missed.first, text, weight=missed.count, action=action)


def _skipped(facts: Facts) -> Iterator[Attention]:
    for skipped in facts.skipped:
        if skipped.due is not None and skipped.count < SKIPPED_OFTEN * skipped.due:
            continue
        why = f": {skipped.reason}" if skipped.reason else ""
        text = f"schedule {skipped.schedule} skipped {many(skipped.count, 'run', 'runs')} within a day{why}"
        yield item(
            "schedule_skipped", skipped.schedule, skipped.first, text,
            severity=WARNING, weight=skipped.count, action=schedule_action("trigger", skipped.schedule),
            hint=f"rota explain {quote(skipped.schedule)}",
        )  # fmt: skip


def _stuck(facts: Facts) -> Iterator[Attention]:
    for run in facts.symptoms.stuck:
        text = f"the lease of run {run.run_id} on {run.worker_id} has expired without being taken away"
        yield item("run_stuck", run.run_id, run.expires_at, text, hint=REAPER_HINT)


def _lingering(facts: Facts) -> Iterator[Attention]:
    for run in facts.lingering:
        text = f"run {run.run_id} was asked to stop, and its grace period is over; {run.worker_id} still holds it"
        yield item("run_lingering", run.run_id, run.expires_at, text, hint=REAPER_HINT)


def _gone(facts: Facts) -> Iterator[Attention]:
    """Yield workers that went silent. One that held nothing is only missed if no other of its name came back."""
    for worker in facts.gone:
        parts = []
        for runs, what in ((worker.held, "holds"), (worker.lost, "lost")):
            if runs:
                parts.append(f"{what} {many(len(runs), 'run', 'runs')} ({_names(runs)})")
        count, text = len(worker.held) + len(worker.lost), f"worker {worker.id} went silent without a shutdown"
        yield item(
            "worker_gone", worker.id, worker.seen_at, f"{text}; it {' and '.join(parts)}" if parts else text,
            severity=PROBLEM if count else WARNING, weight=max(1, count),
            hint="start it again; runs that it held are tried again, as far as their jobs allow",
        )  # fmt: skip


def _unserved(facts: Facts) -> Iterator[Attention]:
    """Yield queues without a live worker.

    Not at once, since a worker may be about to start. Paused queues have an item of their own.
    """
    paused = {pause.name for pause in facts.held if pause.kind == "queue"}
    backlog = backlogs(facts.backlog, "queue")
    for queue, count in unserved_queues(facts.symptoms).items():
        since = backlog[queue][1]
        if queue not in paused and facts.symptoms.now - since > LATE:
            text = f"no live worker takes from queue {queue}, where {many(count, 'run waits', 'runs wait')}"
            yield item("queue_unserved", queue, since, text, hint=queues_hint([queue]), weight=count)


def _unknown(facts: Facts) -> Iterator[Attention]:
    """Yield jobs that no live worker knows; a single item for all of them while no worker knows any job."""
    paused = {pause.name for pause in facts.held if pause.kind == "job"}
    backlog = backlogs(facts.backlog, "job")
    late = {
        job: count
        for job, count in unknown_jobs(facts.symptoms).items()
        if job not in paused and facts.symptoms.now - backlog[job][1] > LATE
    }
    if late and not any(worker.jobs for worker in facts.symptoms.workers):
        count, since = sum(late.values()), min(backlog[job][1] for job in late)
        text = f"no live worker knows any job: {many(count, 'run waits', 'runs wait')} ({_names([*late])})"
        yield item("job_unknown", None, since, text, hint=JOBS_HINT, weight=count)
        return
    for job, count in late.items():
        text = f"no live worker knows job {job}, of which {many(count, 'run waits', 'runs wait')}"
        yield item("job_unknown", job, backlog[job][1], text, hint=JOBS_HINT, weight=count)


def _failure_rates(facts: Facts) -> Iterator[Attention]:
    for job in facts.failing_jobs:
        if job.ended < ENOUGH:
            continue
        share = job.failed / job.ended
        known = job.week_ended >= ENOUGH
        usual = job.week_failed / job.week_ended if known else 0.0
        if share < (max(OFTEN, FAR_ABOVE * usual) if known else UNHEARD):
            continue
        week = f"{usual:.0%} in its week" if known else "no week to compare it with"
        text = f"{job.failed} of the last {job.ended} runs of job {job.job} failed ({share:.0%}; {week})"
        since = _written(job.since)
        command = f"rota run retry --job {quote(job.job)} --state failed --created-after {since}"
        chosen = {"job": job.job, "state": "failed", "created_after": since}
        action = Action(verb="retry_many", args={"filter": chosen}, command=command)
        yield item(
            "failure_rate", job.job, job.since, text, weight=job.failed, action=action,
            hint=f"rota error-groups --job {quote(job.job)} --since 1h",
        )  # fmt: skip


def is_slow(run: LongRun, now: int) -> bool:
    return run.counted >= ENOUGH and now - run.began > max(SLOW_FROM, SLOWER * run.p95)


def _slow(facts: Facts) -> Iterator[Attention]:
    now = facts.symptoms.now
    for run in facts.long_runs:
        if not is_slow(run, now):
            continue
        took, usual = now - run.began, int(run.p95)
        text = (
            f"run {run.run_id} of job {run.job} is at work for {_span(took)} on {run.worker_id}, "
            f"{took / usual:.1f} times as long as 95 % of its job's runs ({_span(usual)})"
        )
        is_scoped = run.scope_kind != "global"
        yield item(
            "run_slow", run.run_id, run.began, text, severity=WARNING,
            scope=scope_text(Scope(run.scope_kind, run.scope_id)) if is_scoped else None,
            weight=took // max(1, usual), hint=f"rota run get {run.run_id}",
            action=Action(verb="cancel", args={"run_id": run.run_id}, command=f"rota run cancel {run.run_id}"),
        )  # fmt: skip


def _growing(facts: Facts) -> Iterator[Attention]:
    of: dict[str, list[QueueDepth]] = {}
    for depth in sorted(facts.depths, key=lambda depth: depth.at):
        of.setdefault(depth.queue, []).append(depth)
    paused = {pause.name for pause in facts.held if pause.kind == "queue"}
    for queue, depths in sorted(of.items()):
        if queue not in paused and (since := _grows_since(depths)) is not None:
            text = f"queue {queue} grew from {since.runs} to {depths[-1].runs} waiting runs"
            yield item(
                "queue_growing", queue, since.at, text, severity=WARNING, weight=depths[-1].runs,
                hint=queues_hint([queue]),
            )  # fmt: skip


def _grows_since(depths: Sequence[QueueDepth]) -> QueueDepth | None:
    """Return the sample from which a queue has grown at every sample, if it is long by now and has grown enough."""
    first = len(depths) - 1
    while first > 0 and depths[first - 1].runs < depths[first].runs:
        first -= 1
    start, last = depths[first], depths[-1]
    has_grown = len(depths) - first > 2 and last.runs >= LONG_QUEUE and last.runs >= GROWN * start.runs
    return start if has_grown else None


def _starved(facts: Facts) -> Iterator[Attention]:
    now = facts.symptoms.now
    for limit in facts.limits:
        if now - limit.oldest > STARVED:
            text = f"{many(limit.runs, 'run waits', 'runs wait')} under the {title(limit.key)}, the oldest"
            yield item(
                "limit_starves", limit.key, limit.oldest, f"{text} for {_span(now - limit.oldest)}", severity=WARNING,
                weight=limit.runs, hint="`rota explain` of a run tells who holds the slots",
            )  # fmt: skip


def _unsent(facts: Facts) -> Iterator[Attention]:
    if count := facts.symptoms.signals:
        text = f"{many(count, 'signal waits', 'signals wait')} for longer than a minute: notifications are not sent"
        yield item("signals_untold", None, None, text, hint=MESSENGER_HINT, severity=WARNING, weight=count)


def _refused(facts: Facts) -> Iterator[Attention]:
    of: dict[str, list[Delivery]] = {}
    for delivery in sorted(facts.deliveries, key=lambda delivery: -delivery.at):
        of.setdefault(delivery.notification, []).append(delivery)
    for name, deliveries in sorted(of.items()):
        refused = []
        for delivery in deliveries:
            if delivery.succeeded:
                break
            refused += [delivery] if delivery.error is not None else []
        if refused:
            text = f"{many(len(refused), 'message', 'messages')} of notification {name} could not be sent"
            command = f"rota notification test {quote(name)}"
            yield item(
                "delivery_refused", name, refused[-1].at, f"{text}: {refused[0].error}", weight=len(refused),
                action=Action(verb="notifications.test", args={"name": name}, command=command),
                hint=f"rota run get {refused[0].run_id}",
            )  # fmt: skip


def _breached(facts: Facts) -> Iterator[Attention]:
    for breach in facts.breaches:
        text = f"{breach.kind} {breach.subject}: {breach.message or breach.what}"
        yield item("expectation_breached", f"{breach.kind}/{breach.subject}", breach.since, text)


def _paused(facts: Facts) -> Iterator[Attention]:
    """Yield pauses under which runs wait, and those that are older than a day."""
    for pause in facts.held:
        count, _ = backlogs(facts.backlog, pause.kind).get(pause.name, (0, 0))
        if count or _is_old(pause.since, facts):
            text = held_words(pause, count) if count else _old_words(pause, facts)
            hint = resume_hint(pause)
            command = f"rota {pause.kind} resume {quote(pause.name)}"
            action = Action(verb=f"resume_{pause.kind}", args={"name": pause.name}, command=command)
            yield item(
                f"{pause.kind}_paused", pause.name, pause.since, text, severity=WARNING, weight=max(1, count),
                hint=hint, action=action,
            )  # fmt: skip


def _is_old(since: int | None, facts: Facts) -> bool:
    return since is not None and facts.symptoms.now - since > DAY


def _old_words(pause: OperatorPause, facts: Facts) -> str:
    assert pause.since is not None
    return f"{pause.kind} {pause.name} {_paused_words(pause.since, pause.by, pause.reason, facts)}"


def _paused_words(since: int, by: str | None, reason: str | None, facts: Facts) -> str:
    why = f" ({reason})" if reason else ""
    return f"is paused for {_span(facts.symptoms.now - since)}{f' by {by}' if by else ''}{why}"


def _paused_schedules(facts: Facts) -> Iterator[Attention]:
    for schedule in facts.paused_schedules:
        if _is_old(schedule.since, facts):
            words = _paused_words(schedule.since, schedule.by, schedule.reason, facts)
            yield item(
                "schedule_paused", schedule.name, schedule.since, f"schedule {schedule.name} {words}",
                severity=WARNING, action=schedule_action("resume", schedule.name),
            )  # fmt: skip


def _database(facts: Facts) -> Iterator[Attention]:
    standing = facts.standing
    if standing is None:
        return
    since = None if standing.since is None else micros_at(standing.since)
    if standing.held:
        copied = DatabaseCopied()
        action = Action(verb="database.accept", args={}, command="rota database accept")
        yield item("database_copied", None, since, copied.message, hint=copied.hint, action=action)
    elif standing.is_news(now := instant(facts.symptoms.now)):
        weight = 1 + standing.lost_runs
        yield item("epoch_new", None, since, standing.words(now), hint=standing.hint, weight=weight)


def _environment(facts: Facts) -> Iterator[Attention]:
    if len(versions := sorted({program.version for program in facts.versions})) > 1:
        counts = {it: sum(program.processes for program in facts.versions if program.version == it) for it in versions}
        named = ", ".join(f"{version} ({many(count, 'process', 'processes')})" for version, count in counts.items())
        hint = "expected during an upgrade; otherwise stop the older ones"
        yield item("versions_apart", None, None, f"versions of rota at work: {named}", severity=WARNING, hint=hint)
    if facts.polls:
        text = "a transaction pooler blocks LISTEN/NOTIFY: work is found by polling, up to a second later"
        yield item("polling", None, None, text, hint="let rota connect to PostgreSQL directly", severity=WARNING)
    clock = check_clock(facts.offset)
    if clock.level != OK:
        yield item("clock", None, None, clock.words, hint=clock.hint, severity=WARNING)


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _span(micros: int) -> str:
    return span(instant(micros) - instant(0))


def _written(micros: int) -> str:
    return str(msgspec.to_builtins(instant(micros)))
