"""Scenarios of what runs do while they work: steps, shields, notes, transactions; and of what is done to many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.simulation.crashes import promises as must
from tests.simulation.crashes.promises import Promise, calls, creations, runs_of, state_of, together
from tests.simulation.crashes.scenario import FIRST, REPORTED, SECOND, TRIED, Scenario, enqueue
from tests.simulation.crashes.world import CrashWorld
from tests.simulation.script.entries import Answer, Bulk, Cancel, Order, RetryByHand
from tests.simulation.world.processes import CONFIG

_TRAVEL = 1.0


def steps_begin_once(world: CrashWorld) -> Iterator[str]:
    """Only a death lets a step be begun again."""
    begun = Counter((deed.run_id, deed.step) for deed in world.diary.steps if deed.what == "begins")
    for (run_id, step), times in begun.items():
        if times > 1 and not world.strike.blow.startswith("crash"):
            yield f"step {step} of {run_id[-6:]} began {times} times, though nobody died"


def kept_is_not_done_again(*steps: str) -> Promise:
    def promise(world: CrashWorld) -> Iterator[str]:
        retries = {run.id for run in runs_of(world) if run.retry_of is not None}
        for deed in world.diary.steps:
            if deed.what == "begins" and deed.run_id in retries and deed.step in steps:
                yield f"was kept, and is done again: {deed}"

    return promise


def never_cut(*steps: str) -> Promise:
    def promise(world: CrashWorld) -> Iterator[str]:
        for deed in world.diary.steps:
            if deed.what == "cut" and deed.step in steps:
                yield f"was interrupted: {deed}"

    return promise


def said_in_the_end(world: CrashWorld) -> Iterator[str]:
    """What the attempt that succeeded said last is there."""
    for run in runs_of(world):
        rows = world.backend.look(f"select fence, done from rota_progress where run_id = '{run.id}'")
        fence = run.end.fence if run.end else None
        said = None if fence is None else world.diary.said.get((run.id, fence))
        if said is not None and [tuple(row) for row in rows] != [(fence, said * 100)]:
            yield f"{run} said {said} in the end, and {rows} is there"


def ends_with_its_effect(*, finishing: bool) -> Promise:
    """Each run has succeeded, and what its transaction did under that fence is there, once."""

    def promise(world: CrashWorld) -> Iterator[str]:
        rows = Counter(tuple(row) for row in world.backend.look("select run_id, fence, finishing from proof_effect"))
        for run in runs_of(world):
            found = rows[run.id, run.end.fence if run.end else None, int(finishing)]
            if state_of(run) != "succeeded" or found != 1:
                yield f"{run}, and its effect is there {found} times"

    return promise


def all_cancelled_if_told(world: CrashWorld) -> Iterator[str]:
    for call in calls(world, "cancel_many"):
        for run in runs_of(world) if call.acknowledged else ():
            if state_of(run) != "cancelled":
                yield f"{run} after {call}"


def each_retried_once(world: CrashWorld) -> Iterator[str]:
    """All that had ended when it was asked for, if whoever asked was told so; and none of them twice."""
    made = Counter(run.retry_of for _, run in creations(world) if run.retry_of is not None)
    ended = {change.run_id: change.at for change in world.changes if change.after and change.after.end}
    asked = [call.at for call in calls(world, "retry_many") if call.acknowledged]
    for run in runs_of(world):
        if made[run.id] not in ({1} if asked and ended[run.id] < asked[0] else {0, 1}):
            yield f"{run} was retried {made[run.id]} times"


def claims_nothing_while_drained(world: CrashWorld) -> Iterator[str]:
    """From the next heartbeat on, whoever was told so; until it is asked to go on."""
    until = min((call.at for call in calls(world, "resume")), default=world.loop.time())
    for call in calls(world, "drain"):
        since = (call.answered_at or until) + CONFIG.heartbeat.total_seconds() + _TRAVEL
        for change in world.changes:
            lease = change.after.lease if change.after else None
            is_new = lease and (change.before is None or change.before.lease is None)
            if lease and is_new and since < change.at < until and lease.worker in (call.answer or ()):
                yield f"claimed by {lease.worker}, which was told to drain: {change}"


def answered_is_done(world: CrashWorld) -> Iterator[str]:
    """What somebody outside was told is done, is: its run goes on with it, and does not ask again."""
    answered = {call.what for call in calls(world, "complete") if call.acknowledged and call.error is None}
    for run in runs_of(world):
        if run.id in answered and state_of(run) != "succeeded":
            yield f"{run} was answered, and has not succeeded"


WORKING = [
    Scenario(
        name="hand-over",
        entries=[
            enqueue(0.5, "asker", "ask:0.1", copies=2),
            *(Answer(at, FIRST, "complete") for at in range(2, 12, 2)),
        ],
        subjects=(REPORTED, "client-1 ExternalStore.finish"),
        promise=together(must.all_end("succeeded", "timed_out"), answered_is_done),
        span=12.0,
    ),
    Scenario(
        name="hand-over-that-fails",
        entries=[
            enqueue(0.5, "asker", "ask:0.1"),
            Answer(2.0, SECOND, "fail"),
            *(Answer(at, FIRST, "complete") for at in range(5, 14, 2)),
        ],
        subjects=("client-2 ExternalStore.finish", REPORTED, "engine promote"),
        promise=together(must.all_end("succeeded", "timed_out", "failed"), answered_is_done),
        span=14.0,
    ),
    Scenario(
        name="hand-over-that-nobody-ends",
        entries=[enqueue(0.5, "asker", "ask:0.1")],
        subjects=("engine Store.reap", REPORTED),
        promise=must.all_end("timed_out", "expired"),
        span=14.0,
    ),
    Scenario(
        name="hand-over-and-cancel",
        entries=[enqueue(0.5, "asker", "ask:0.1"), Cancel(2.0, SECOND, 0.0)],
        subjects=("client-2 Store.cancel", "engine Store.reap"),
        promise=together(must.all_end("cancelled", "timed_out", "expired"), must.cancelled_if_told),
        span=8.0,
    ),
    Scenario(
        name="drain",
        entries=[
            enqueue(0.5, "plain", "ok:4", copies=2),
            Order(1.0, FIRST, "drain", "engine-1"),
            enqueue(7.0, "plain", "ok:0.1", client=SECOND, copies=2),
            Order(9.0, SECOND, "resume", "engine-1"),
            Order(10.0, FIRST, "resume", "engine-1"),  # whoever did so first may have died of it
        ],
        subjects=("client-1 WorkerStore.ask", "client-2 WorkerStore.ask", "engine Store.extend"),
        promise=together(TRIED, claims_nothing_while_drained),
        span=12.0,
    ),
    Scenario(
        name="step-end",
        entries=[enqueue(0.5, "stepped", "fetch:0.3,store:0.3")],
        subjects=("engine NoteStore.write", REPORTED),
        promise=together(TRIED, steps_begin_once),
    ),
    Scenario(
        name="step-ends-at-once",
        entries=[enqueue(0.5, "loose", "one:0.3+two:0.3+three:0.3,four:0.2")],
        subjects=("engine NoteStore.write",),
        promise=together(TRIED, steps_begin_once),
    ),
    Scenario(
        name="shield",
        entries=[enqueue(0.5, "stepped", "fetch:0.1,pay:1,store:0.1")],
        subjects=("engine NoteStore.shield", "engine NoteStore.unshield"),
        promise=together(TRIED, steps_begin_once),
    ),
    Scenario(
        name="two-shields",
        entries=[enqueue(0.5, "stepped", "pay:1+ship:1,rest:0.5")],
        subjects=("engine NoteStore.shield", "engine NoteStore.unshield", "engine NoteStore.write"),
        promise=together(TRIED, steps_begin_once),
    ),
    Scenario(
        name="shield-and-cancel",
        entries=[enqueue(0.5, "stepped", "pay:5,rest:5:still"), Cancel(1.5, SECOND, 0.0)],
        subjects=("client-2 Store.cancel", "engine NoteStore.unshield", REPORTED),
        promise=together(must.all_end("succeeded", "cancelled"), must.cancelled_if_told, never_cut("pay")),
        span=8.0,
    ),
    Scenario(
        name="notes-before-the-report",
        entries=[enqueue(0.5, "payer", "rest:0.2", copies=2)],
        subjects=("engine NoteStore.write", REPORTED),
        promise=together(TRIED, said_in_the_end),
    ),
    Scenario(
        name="transaction-with-the-end",
        entries=[enqueue(0.5, "payer", "fetch:0.2,tx:0.3:finish")],
        subjects=("engine NoteStore.write", "engine GateSession.within"),
        promise=ends_with_its_effect(finishing=True),
    ),
    Scenario(
        name="transaction-without-the-end",
        entries=[enqueue(0.5, "payer", "tx:0.3,rest:0.2")],
        subjects=("engine GateSession.within", REPORTED),
        promise=ends_with_its_effect(finishing=False),
    ),
    Scenario(
        name="retry-keeping-steps",
        entries=[
            enqueue(0.5, "stepped", "fetch:0.1,pay:0.1,store:0.1:fail"),
            RetryByHand(2.5, SECOND, 0.0, True),
        ],
        subjects=("client-2 Store.enqueue_keeping",),
        promise=together(must.all_end("failed"), must.one_retry_per_answer, kept_is_not_done_again("fetch", "pay")),
    ),
    Scenario(
        name="cancel-many",
        entries=[
            enqueue(0.5, "plain", "ok:0.1", copies=3, delay="9s"),
            enqueue(0.5, "plain", "polite:5", client=SECOND, copies=2),
            Bulk(2.0, FIRST, "cancel", "plain"),
        ],
        subjects=("client-1 BulkStore.cancel_waiting", "client-1 Store.cancel"),
        promise=together(must.all_end("succeeded", "cancelled"), all_cancelled_if_told),
    ),
    Scenario(
        name="retry-many",
        entries=[enqueue(0.5, "plain", "fail:0.1", copies=3), Bulk(2.5, SECOND, "retry", "plain")],
        subjects=("client-2 BulkStore.retry",),
        promise=together(must.all_end("failed"), each_retried_once),
    ),
]
