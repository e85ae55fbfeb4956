"""Promises about the whole of a world, checked when all faults are over and everything had time to end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from rota.core.progress.control_flow import Cancelled
from rota.core.states import Outcome
from rota.errors import RotaError
from rota.store.databases.database import drive
from rota.values.actor import POLICY
from rota.values.durations import parse_duration
from tests.simulation.application.data_jobs import DATA_PIPELINES, PARTS
from tests.simulation.application.jobs import JOBS, is_shielded
from tests.simulation.application.pipelines import PIPELINES
from tests.simulation.checks.audit_trail import CANCELS_MANY, HAND, trails_are_true
from tests.simulation.checks.error_groups import faults_are_found
from tests.simulation.checks.orphans import orphans
from tests.simulation.checks.progress import transactions_are_whole
from tests.simulation.checks.schedules import max_runs_is_kept, plan_times_are_answered
from tests.simulation.script.entries import Enqueue
from tests.simulation.world.backends import Direct
from tests.simulation.world.observer import Finding, Remains
from tests.simulation.world.processes import CONFIG

if TYPE_CHECKING:
    from tests.simulation.world.world import World

POLICIES = frozenset(f"{POLICY}{name}" for name in ("overlap", "limit", "dependency", "replicas"))
_COURTESY = 5.0  # that a handler has to stop by itself, at most
_RECOVERY = 5.0
_TRAVEL = 3.0  # that an operation may take


_TOLD = CONFIG.heartbeat.total_seconds() + _TRAVEL  # how soon a worker hears of a cancel, or of a lease that is lost


def _courtesy(job: str) -> float:
    """How soon it interrupts a handler then: after the part of its grace in which that may stop by itself."""
    grace = parse_duration(JOBS[job].get("cancel_grace", "30s")).total_seconds()
    return min(grace / 3, _COURTESY) + 1.0


def all_is_final(world: Remains) -> Iterator[Finding]:
    """P12: nothing lost, nothing stuck."""
    for seen in world.observer.runs.values():
        if seen.end is None:
            yield "P12", f"not final ten leases after the last fault: {seen}"


def acknowledged_is_there(world: World) -> Iterator[Finding]:
    """P7: what was acknowledged exists, unless retention took it after its end."""
    seen = {change.run_id for change in world.changes if change.before is None}
    for call in world.diary.calls:
        if call.verb == "enqueue" and call.acknowledged:
            for run_id, _ in call.answer:
                if run_id not in seen:
                    yield "P7", f"acknowledged and not there: {call}"


def one_run_per_idempotency_key(world: World) -> Iterator[Finding]:
    """P8: all answers name the same run, and nobody made another."""
    named: dict[str, set[str]] = {}
    asked: dict[str, set[str]] = {}
    for call in world.diary.calls:
        if call.verb == "enqueue" and call.acknowledged and "idempotency_key" in call.what:
            key = call.what.partition("idempotency_key': '")[2].partition("'")[0]
            named.setdefault(key, set()).update(run_id for run_id, _ in call.answer)
            asked.setdefault(key, set()).add(call.what)
    for key, ids in named.items():
        if len(ids) > 1:
            yield "P8", f"key {key!r} led to {len(ids)} runs: {sorted(ids)}"
        if len(asked[key]) > 1:
            yield "P8", f"key {key!r} was accepted for different work: {sorted(asked[key])}"


def one_run_per_order(world: World) -> Iterator[Finding]:
    """P7: an order makes one run, whatever became of its answer; and one that names a run names a live one."""
    made: Counter[int] = Counter()
    ended: dict[str, float] = {}
    for change in world.changes:
        seen = change.after
        if seen and change.before is None and not seen.schedule_id and not seen.retry_of and not seen.parent_id:
            made[msgspec.json.decode(seen.payload)["n"]] += 1
        if seen and seen.end and not (change.before and change.before.end):
            ended[seen.id] = change.at
    for n, count in made.items():
        if count > 1:
            yield "P7", f"order {n} made {count} runs"
    for call in world.diary.calls:
        if call.verb == "enqueue" and call.acknowledged and "idempotency" not in call.what:
            for run_id, created in call.answer:
                if not created and ended.get(run_id, call.at) < call.at:
                    yield "P8", f"led to a run that was over: {call}"


def ledgers_verify(world: World) -> Iterator[Finding]:
    """P1, P3, P4: every plan time exactly once, and none that the schedule did not name."""
    store = Direct(world.backend, world.clock).store()
    for schedule in drive(store.schedules.list(job=None, owner=None, limit=100, after=None)):
        found = drive(store.ledger.verify(schedule.name))
        for finding in found.findings:
            yield "P1", f"{schedule.name}: {finding}"


def attempts_are_told(world: World) -> Iterator[Finding]:
    """P17: every claim that ever was can be read back, in order, with who held it, under which fence, and its end."""
    store = Direct(world.backend, world.clock).store()
    leases: dict[str, dict[int, str]] = {}
    for change in world.changes:
        if change.after and change.after.lease:
            leases.setdefault(change.run_id, {})[change.after.lease.fence] = change.after.lease.worker
    for run_id, held in leases.items():
        if run_id not in world.observer.runs:
            continue
        told = drive(store.attempts(run_id))
        if world.observer.runs[run_id].job in (
            *PIPELINES,
            *DATA_PIPELINES,
        ):  # while one is paused, claims are put back at once
            told = [one for one in told if one.fence in held or one.outcome is not Outcome.HANDED_BACK]
        if [(attempt.fence, attempt.worker_id) for attempt in told] != sorted(held.items()):
            yield "P17", f"run {run_id[-6:]} was held by {sorted(held.items())}, and is told to have been by {told}"
        if any(attempt.outcome is None or attempt.ended_at is None for attempt in told):
            yield "P17", f"run {run_id[-6:]} is final, and an attempt has no end: {told}"


def begun_under_a_lease(world: World) -> Iterator[Finding]:
    """P9, P14: handlers begin once per fence, under a lease that their worker was given."""
    given = {
        (change.run_id, change.after.lease.fence): change.after.lease.worker
        for change in world.changes
        if change.after and change.after.lease
    }
    begun: set[tuple[str, int]] = set()
    for deed in world.diary.deeds:
        if deed.what != "began":
            continue
        key = (deed.run_id, deed.fence)
        if given.get(key) != deed.worker:
            yield "P9", f"begun by {deed.worker} under the lease of {given.get(key)}: {deed}"
        if key in begun:
            yield "P9", f"begun twice under one fence: {deed}"
        begun.add(key)
    snoozed = Counter(deed.run_id for deed in world.diary.deeds if deed.detail == "Snooze")
    for run_id, seen in world.observer.runs.items():
        times = world.diary.begun.get(run_id, 0) - snoozed[run_id]
        if seen.job == "once" and times > 1:
            yield "P14", f"at most once, and begun {times} times: {seen}"


def successes_are_true(world: World) -> Iterator[Finding]:
    """P10, P11: what succeeded did return, under the fence that is recorded."""
    returned = {(deed.run_id, deed.fence) for deed in world.diary.deeds if deed.what == "returned"}
    returned |= {(deed.run_id, deed.fence) for deed in world.diary.steps if deed.what == "finishes"}
    returned |= {(call.what, call.options["fence"]) for call in world.diary.calls if call.verb == "complete"}
    conducted = {change.run_id for change in world.changes if change.before and change.before.conduct}
    for seen in world.observer.runs.values():
        if seen.id in conducted:
            continue  # a check of its own looks at its replicas
        if seen.end and seen.end.state == "succeeded" and (seen.id, seen.end.fence) not in returned:
            yield "P10", f"succeeded, and its handler never returned: {seen}"


def cancellation_is_heard(world: World) -> Iterator[Finding]:
    """P15: a handler that can be reached hears that it is to stop within a heartbeat, or has ended by then.

    While it is in a step that is not to be cancelled, it is not reached.
    """
    shields = _shields_end(world)
    ends = {(deed.run_id, deed.fence): deed.at for deed in world.diary.deeds if deed.what in ("returned", "stopped")}
    began = {(deed.run_id, deed.fence): deed for deed in world.diary.deeds if deed.what == "began"}
    for change in world.changes:
        was, now = (seen.lease if seen else None for seen in (change.before, change.after))
        if was is None or now is None or was.cancel_at is not None or now.cancel_at is None:
            continue
        key = (change.run_id, now.fence)
        begun = began.get(key)
        told = max(change.at, begun.at if begun else 0.0) + _TOLD
        by = max(told, shields.get(key, 0.0)) + _courtesy(change.after.job if change.after else "")
        reached = world.is_calm(change.at - _RECOVERY, by) and world.deaths.get(now.worker, by) >= by
        if begun is None or "stubborn" in begun.detail or not reached:
            continue
        if ends.get(key, by + 1) > by:
            yield "P15", f"asked to stop, and went on until {ends.get(key)}: {change}"


def _shields_end(world: World) -> dict[tuple[str, int], float]:
    """When the last step that is not to be cancelled was over, by run and fence; never, if its process died in it."""
    ends = {}
    for deed in world.diary.steps:
        if deed.what != "finishes" and is_shielded(deed.job, deed.step):
            ends[deed.run_id, deed.fence] = math.inf if deed.what == "begins" else deed.at
    return ends


def cancels_are_meant(world: World) -> Iterator[Finding]:
    """P15: what somebody cancelled ends so, or had succeeded; and nothing ends so that nobody cancelled."""
    who: dict[str, set[str]] = {}
    for call in world.diary.calls:
        if call.verb == "cancel":
            who.setdefault(call.what, set(POLICIES)).add(call.client)
        for seen in world.observer.runs.values() if call.verb in CANCELS_MANY else ():
            if call.what in (seen.job, *(PARTS if seen.job in DATA_PIPELINES else ())):
                who.setdefault(seen.id, set(POLICIES)).add(call.client)
    for seen in world.observer.runs.values():
        if (
            seen.end
            and seen.end.state == "cancelled"
            and seen.end.cancelled_by not in who.get(seen.id, POLICIES) | {HAND}
        ):
            yield "P17", f"cancelled by {seen.end.cancelled_by}, and {sorted(who.get(seen.id, ()))} asked: {seen}"
    for call in world.diary.calls:
        end = world.observer.runs[call.what].end if call.what in world.observer.runs else None
        wanted = ("cancelled",) if str(call.answer) == "cancelled" else ("cancelled", "succeeded")
        if call.verb == "cancel" and call.acknowledged and end and end.state not in wanted:
            yield "P15", f"asked to be cancelled, and {end.state}: {call}"


def delays_are_kept(world: World) -> Iterator[Finding]:
    """P2: what was to begin later is due later."""
    for change in world.changes:
        seen = change.after
        if change.before is None and seen and not seen.schedule_id and not seen.retry_of and not seen.parent_id:
            place = msgspec.json.decode(seen.payload)["n"] // 100
            entry = world.script.entries[place] if place < len(world.script.entries) else None
            delay = parse_duration(entry.options.get("delay", "0s")) if isinstance(entry, Enqueue) else timedelta(0)
            if seen.run_at < seen.created_at + delay // timedelta(microseconds=1):
                yield (
                    "P2",
                    f"due {(seen.run_at - seen.created_at) / 1e6:.3f}s after it was enqueued, not {delay}: {seen}",
                )


def zombies_stop(world: World) -> Iterator[Finding]:
    """P9: a handler whose lease is lost stops once its process can be reached again, wherever it runs."""
    ends = {(deed.run_id, deed.fence): deed.at for deed in world.diary.deeds if deed.what in ("returned", "stopped")}
    began = {(deed.run_id, deed.fence): deed for deed in world.diary.deeds if deed.what == "began"}
    for change in world.changes:
        was = change.before.lease if change.before else None
        if change.op != "Store.reap" or was is None:
            continue
        key = (change.run_id, was.fence)
        since = max([change.at, *(end for begin, end in world.troubles if begin <= change.at)])
        by = since + _TOLD + _courtesy(change.before.job if change.before else "")
        alive = world.deaths.get(was.worker, by) >= by and world.loop.time() > by
        if key not in began or "stubborn" in began[key].detail or not alive:
            continue
        if ends.get(key, by + 1) > by and world.is_calm(since + 0.001, by):
            yield "P9", f"went on though its lease was lost at {change.at:.3f}s: {began[key]}"


def no_complaints(world: World) -> Iterator[Finding]:
    """Nothing goes wrong that nobody expected."""
    for complaint in world.loop.complaints:
        yield "engine", complaint
    for task in world.tasks():
        error = None if not task.done() or task.cancelled() else task.exception()
        if error is not None and not isinstance(error, RotaError | Cancelled):
            yield "engine", f"{task}: {error!r}"


CHECKS: list[Callable[[World], Iterator[Finding]]] = [
    all_is_final,
    acknowledged_is_there,
    one_run_per_idempotency_key,
    one_run_per_order,
    begun_under_a_lease,
    successes_are_true,
    transactions_are_whole,
    cancellation_is_heard,
    cancels_are_meant,
    max_runs_is_kept,
    plan_times_are_answered,
    ledgers_verify,
    attempts_are_told,
    trails_are_true,
    faults_are_found,
    delays_are_kept,
    zombies_stop,
    orphans,
    no_complaints,
]
