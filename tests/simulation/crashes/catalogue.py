"""Small worlds, each about one thing that rota does: what happens in it, and what must hold whatever is struck."""

from __future__ import annotations

from typing import Any

from tests.simulation.crashes import promises as must
from tests.simulation.crashes.coordination import COORDINATION
from tests.simulation.crashes.progress import WORKING
from tests.simulation.crashes.promises import together
from tests.simulation.crashes.scenario import FIRST, REPORTED, SECOND, TRIED, Scenario, enqueue
from tests.simulation.script.entries import (
    AddSchedule,
    Cancel,
    ChangeSchedule,
    Freeze,
    Hold,
    Jump,
    Kill,
    RetryByHand,
    Stop,
)

CREATED = "client ScheduleStore.create"
CHANGED = "ScheduleStore._changing"
PLANNED = "engine PlanningStore.plan"
CLAIMED = "engine Store.claim_in_order"
ALL: dict[str, Any] = {"catch_up": {"mode": "all"}, "overlap": "allow"}


def schedule(*acts: str, every: int = 2, **options: Any) -> AddSchedule:
    return AddSchedule(0.5, FIRST, "s", {"every": f"{every}s"}, list(acts or ("ok:0.1",)), options)


def change(at: float, client: str, verb: str, **options: Any) -> ChangeSchedule:
    return ChangeSchedule(at, client, "s", verb, options)


RUNS = [
    Scenario(
        name="start",
        entries=[enqueue(0.0, "plain", "ok:0.1")],
        subjects=("engine Store.save_jobs", "engine Store.extend"),
        promise=together(TRIED, must.enqueued_whole_or_not),
        engines=2,
    ),
    Scenario(
        name="enqueue",
        entries=[enqueue(0.5, "plain", "ok:0.1"), enqueue(1.0, "hasty", "ok:0.1", client=SECOND)],
        subjects=("client-1 Store.enqueue", "client-2 Store.enqueue"),
        promise=together(TRIED, must.enqueued_whole_or_not),
    ),
    Scenario(
        name="enqueue-bulk",
        entries=[enqueue(0.5, "plain", "ok:0.1", copies=3)],
        subjects=("client Store.enqueue",),
        promise=together(TRIED, must.enqueued_whole_or_not),
    ),
    Scenario(
        name="enqueue-idempotency-key",
        entries=[
            enqueue(0.5, "plain", "ok:0.1", idempotency_key="once"),
            enqueue(0.5, "plain", "ok:0.1", idempotency_key="once", client=SECOND),
        ],
        subjects=("client Store.enqueue",),
        promise=together(TRIED, must.exactly_one_run),
    ),
    Scenario(
        name="unique-replace",
        entries=[
            enqueue(0.5, "plain", "ok:0.1", delay="3s", key="one", unique={"on_conflict": "replace"}),
            enqueue(1.5, "plain", "ok:0.1", delay="1s", key="one", unique={"on_conflict": "replace"}, client=SECOND),
        ],
        subjects=("client-1 Store.enqueue", "client-2 Store.enqueue"),
        promise=together(TRIED, must.exactly_one_run, must.last_enqueue_counts),
    ),
    Scenario(
        name="promote",
        entries=[enqueue(0.5, "plain", "ok:0.1", delay="2s")],
        subjects=("engine promote",),
        promise=TRIED,
    ),
    Scenario(
        name="claim",
        entries=[enqueue(0.5, "plain", "ok:0.5", copies=4), enqueue(0.6, "careful", "ok:0.1")],
        subjects=(CLAIMED,),
        promise=together(must.all_end("succeeded", "expired"), must.trouble_repeats_nothing, must.some_run),
        engines=2,
    ),
    Scenario(
        name="heartbeat",
        entries=[enqueue(0.5, "plain", "ok:7")],
        subjects=("engine Store.extend",),
        promise=TRIED,
        span=8.0,
    ),
    Scenario(
        name="finish",
        entries=[enqueue(0.5, "plain", "ok:0.2", copies=2), enqueue(1.5, "hasty", "ok:0.1")],
        subjects=(REPORTED,),
        promise=TRIED,
    ),
    Scenario(
        name="fail",
        entries=[enqueue(0.5, "plain", "fail:0.1")],
        subjects=(REPORTED,),
        promise=must.all_end("failed"),
    ),
    Scenario(
        name="retry",
        entries=[enqueue(0.5, "plain", "raise:0.1", "raise:0.1", "ok:0.1")],
        subjects=(REPORTED, "engine promote"),
        promise=must.all_succeed,
        span=9.0,
    ),
    Scenario(
        name="retry-by-hand",
        entries=[enqueue(0.5, "plain", "fail:0.1"), RetryByHand(2.0, SECOND, 0.0)],
        subjects=("client-2 Store.enqueue_retry",),
        promise=together(must.all_end("failed"), must.one_retry_per_answer),
    ),
    Scenario(
        name="timeout",
        entries=[enqueue(0.5, "timed", "ok:6", "ok:0.1")],
        subjects=(REPORTED,),
        promise=must.all_end("succeeded", "timed_out", "expired"),
        span=6.0,
    ),
    Scenario(
        name="snooze",
        entries=[enqueue(0.5, "plain", "snooze:0.1")],
        subjects=(REPORTED, "engine promote"),
        promise=must.all_succeed,
        span=6.0,
    ),
    Scenario(
        name="cancel-queued",
        entries=[enqueue(0.5, "plain", "ok:0.1", delay="3s"), Cancel(1.5, SECOND, 0.0)],
        subjects=("client-2 Store.cancel",),
        promise=together(
            must.all_end("succeeded", "cancelled"), must.cancelled_if_told, must.never_begins_once_cancelled
        ),
    ),
    Scenario(
        name="cancel-running",
        entries=[enqueue(0.5, "plain", "polite:5"), Cancel(2.0, SECOND, 0.0)],
        subjects=("client-2 Store.cancel", REPORTED),
        promise=together(must.all_end("succeeded", "cancelled"), must.cancelled_if_told),
    ),
    Scenario(
        name="cancel-stubborn",
        entries=[enqueue(0.5, "planned", "stubborn:8"), Cancel(2.0, SECOND, 0.0)],
        subjects=("client-2 Store.cancel", "engine Store.reap"),
        promise=together(must.all_end("succeeded", "cancelled"), must.cancelled_if_told),
        span=7.0,
    ),
    Scenario(
        name="reap",
        entries=[enqueue(0.5, "plain", "ok:2", copies=2), Kill(1.5, "engine-1", 20.0)],
        subjects=("engine-2 Store.reap",),
        promise=must.all_succeed,
        span=13.0,
        engines=2,
    ),
    Scenario(
        name="reap-once-only",
        entries=[enqueue(0.5, "careful", "ok:9"), Kill(1.5, "engine-1", 4.0)],
        subjects=("engine Store.reap",),
        promise=together(must.all_end("expired", "succeeded"), must.begins_once),
        span=12.0,
    ),
    Scenario(
        name="zombie",
        entries=[enqueue(0.5, "plain", "ok:2"), Freeze(1.0, "engine-1", 13.0)],
        subjects=("engine-2 Store.reap", "engine-2 Store.report"),
        promise=must.all_succeed,
        span=15.0,
        engines=2,
    ),
    Scenario(
        name="stop",
        entries=[enqueue(0.5, "plain", "ok:5"), Stop(1.5, "engine-1", 1.0)],
        subjects=(REPORTED, "engine Store.worker_gone"),
        promise=together(must.all_succeed, must.stopping_costs_nothing),
        span=7.0,
    ),
    Scenario(
        name="prune",
        entries=[enqueue(0.5, "fleeting", "ok:0.1", copies=4)],
        subjects=("engine drop_runs",),
        promise=together(must.all_succeed, must.counted_once("fleeting")),
        span=11.0,
    ),
    Scenario(
        name="limit-of-job",
        entries=[enqueue(0.5, "narrow", "ok:0.6", copies=4)],
        subjects=("engine Store.claim_in_order", REPORTED),
        promise=TRIED,
        engines=2,
    ),
    Scenario(
        name="limit-of-key",
        entries=[
            enqueue(0.5, "keyed", "ok:0.4", copies=2, scope=("tenant", "a")),
            enqueue(0.5, "keyed", "ok:0.4", client=SECOND, scope=("tenant", "b")),
        ],
        subjects=("engine Store.claim_in_order", REPORTED),
        promise=together(TRIED, must.enqueued_whole_or_not),
        engines=2,
    ),
    Scenario(
        name="pause-queue",
        entries=[
            Hold(0.5, FIRST, "queue", "default", 2.0),
            enqueue(1.0, "plain", "ok:0.1", client=SECOND),
            enqueue(1.0, "narrow", "ok:0.1", client=SECOND),
        ],
        subjects=("client Store.pause_queue", "client Store.resume_queue"),
        promise=together(TRIED, must.claims_nothing_while_held("Store.pause_queue", "Store.resume_queue")),
    ),
]

SCHEDULES = [
    Scenario(
        name="plan",
        entries=[schedule(**ALL)],
        subjects=(CREATED, PLANNED),
        promise=together(TRIED, must.every_plan_time_runs(2)),
        span=5.0,
        engines=2,
    ),
    Scenario(
        name="plan-scopes",
        entries=[schedule(scopes=[["tenant", "a"], ["tenant", "b"]], overlap="queue_one", max_concurrency=1)],
        subjects=(PLANNED, "engine Store.claim_in_order"),
        promise=together(must.all_end("succeeded", "skipped", "cancelled"), must.goes_on),
    ),
    Scenario(
        name="catch-up-all",
        entries=[schedule(every=5, catch_up={"mode": "all", "keep": 6, "per_tick": 2}), Jump(2.0, 60.0)],
        subjects=(PLANNED,),
        promise=together(must.all_succeed, must.each_planned_once, must.one_at_a_time, must.in_order),
        span=5.0,
    ),
    Scenario(
        name="catch-up-latest",
        entries=[schedule(every=5, catch_up="latest", overlap="allow"), Jump(2.0, 60.0)],
        subjects=(PLANNED,),
        promise=together(must.all_succeed, must.each_planned_once),
        span=5.0,
    ),
    Scenario(
        name="overlap-queue",
        entries=[schedule("ok:2.2", catch_up={"mode": "all"}, overlap="queue_all")],
        subjects=(PLANNED, REPORTED),
        promise=together(must.all_succeed, must.every_plan_time_runs(2), must.one_at_a_time, must.in_order),
        span=5.0,
    ),
    Scenario(
        name="overlap-cancel-previous",
        entries=[schedule("polite:3", overlap="cancel_previous")],
        subjects=(PLANNED, REPORTED),
        promise=together(
            must.all_end("succeeded", "cancelled", "skipped"), must.each_planned_once, must.one_at_a_time, must.goes_on
        ),
        span=7.0,
    ),
    Scenario(
        name="follow",
        entries=[AddSchedule(0.5, FIRST, "s", {"after": "2s"}, ["ok:0.1"])],
        subjects=(PLANNED, "engine PlanningStore.wake_followers"),
        promise=together(must.all_succeed, must.goes_on),
        span=6.0,
    ),
    Scenario(
        name="pause-after-failure",
        entries=[schedule("fail:0.1", failure="pause")],
        subjects=(PLANNED,),
        promise=together(must.all_end("failed", "skipped"), must.stops_after_failure),
        span=5.0,
    ),
    Scenario(
        name="pause-and-skip",
        entries=[schedule(**ALL), change(2.5, FIRST, "pause"), change(6.5, SECOND, "resume", catch_up="skip")],
        subjects=(f"client-1 {CHANGED}", f"client-2 {CHANGED}"),
        promise=together(
            TRIED, must.plans_nothing_while_paused, must.of_the_pause(made_up_for=False, seconds=2), must.goes_on
        ),
        span=8.0,
    ),
    Scenario(
        name="pause-and-catch-up",
        entries=[schedule(**ALL), change(2.5, FIRST, "pause"), change(6.5, SECOND, "resume", catch_up="all")],
        subjects=(f"client-1 {CHANGED}", f"client-2 {CHANGED}"),
        promise=together(
            TRIED, must.plans_nothing_while_paused, must.of_the_pause(made_up_for=True, seconds=2), must.goes_on
        ),
        span=8.0,
    ),
    Scenario(
        name="update",
        entries=[schedule(**ALL), change(3.5, SECOND, "update", trigger={"every": "5s"})],
        subjects=(f"client-2 {CHANGED}",),
        promise=together(TRIED, must.edited_once(5)),
        span=7.0,
    ),
    Scenario(
        name="delete",
        entries=[schedule(**ALL), change(3.5, SECOND, "delete")],
        subjects=("client-2 ScheduleStore.delete",),
        promise=together(TRIED, must.nothing_made_after("client-2", "ScheduleStore.delete")),
        span=6.0,
    ),
    Scenario(
        name="backfill",
        entries=[schedule(**ALL), change(3.0, SECOND, "backfill", back=3.0, again="all")],
        subjects=("client-2 LedgerStore.backfill", "engine Store.claim_in_order"),
        promise=together(TRIED, must.backfilled_once, must.each_planned_once),
        span=5.0,
    ),
    Scenario(
        name="trigger",
        entries=[schedule(every=60), change(2.0, SECOND, "trigger", force=True)],
        subjects=("client-2 ScheduleStore.trigger",),
        promise=together(TRIED, must.triggered_once),
    ),
    Scenario(
        name="pause-job",
        entries=[schedule(**ALL), Hold(2.5, SECOND, "job", "planned", 3.0, "skip")],
        subjects=("client-2 pause", "client-2 _resume_some"),
        promise=together(TRIED, must.claims_nothing_while_held("pause", "_resume_some")),
        span=7.0,
    ),
    Scenario(
        name="pause-job-and-catch-up",
        entries=[schedule(**ALL), Hold(2.5, SECOND, "job", "planned", 3.0, "all")],
        subjects=("client-2 pause", "client-2 _resume_some"),
        promise=together(TRIED, must.claims_nothing_while_held("pause", "_resume_some")),
        span=7.0,
    ),
]

SCENARIOS = {scenario.name: scenario for scenario in (*RUNS, *WORKING, *SCHEDULES, *COORDINATION)}
