"""Explanations as pure functions: why a plan time will or will not run, and what a run waits for."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.calendar.rules import Rule
from rota.core.calendar.triggers import every
from rota.core.ledger.explain_plan_time import PlanTimeFacts, explain_plan_time
from rota.core.ledger.explain_run import LiveWorker, RunFacts, explain_run
from rota.core.ledger.verify import History, Range
from rota.core.planning.overlap_and_failure import Lane, LiveRun
from rota.core.runs.admission import Hold
from rota.core.runs.run import Run
from rota.core.schedules.policies import Failure, FailureMode, Overlap, OverlapMode
from rota.core.schedules.revisions import Revision
from rota.core.schedules.schedule import Schedule, ScheduleDefinition
from rota.core.states import RunState
from rota.core.workers.worker import WorkerState
from rota.values.instants import instant
from rota.values.scope import GLOBAL

MINUTE = 60_000_000
NOW = 10 * MINUTE


def facts(at: int, lane: Lane | None = None, ranges: Sequence[Range] = (), **options: Any) -> PlanTimeFacts:
    definition = ScheduleDefinition(job="work", rule=Rule(every("1m")), **options)
    schedule = Schedule(
        id="id", name="s", job="work", definition=definition, owner="me", revision=1, enabled=True, paused_at=None,
        paused_by=None, pause_reason=None, resume_at=None, job_paused=False, cursor_at=instant(NOW),
        next_plan=instant(NOW + MINUTE), awaits=None, fired=0, tzdata="1", trouble=None, created_at=instant(0),
        updated_at=instant(0),
    )  # fmt: skip
    return PlanTimeFacts(
        at=at,
        now=NOW,
        schedule=schedule,
        history=History("id", "s", (Revision(1, 0, definition, "1", True),), (), NOW, "1"),
        runs=(),
        covering=(),
        ranges=ranges,
        lanes={GLOBAL: lane or Lane()},
        max_attempts=1,
        next_at=NOW + MINUTE,
        provider=None,
        planners=1,
    )


BUSY = Lane(live=(LiveRun("r1", begun=True, claimed=True),))
FAILED = Lane(failed=True, failures=2, finished_at=NOW)


@pytest.mark.parametrize(
    ("lane", "options", "words"),
    [
        (BUSY, {}, "it would be skipped: overlap: run r1 is not over"),
        (BUSY, {"overlap": Overlap(mode=OverlapMode.QUEUE_ALL)}, "it would wait for run r1"),
        (
            Lane(live=(LiveRun("r1"),)),
            {"overlap": Overlap(mode=OverlapMode.CANCEL_PREVIOUS)},
            "it would supersede run r1",
        ),
        (FAILED, {"failure": Failure(mode=FailureMode.PAUSE)}, "the schedule would be paused: failure"),
        (FAILED, {"failure": Failure(mode=FailureMode.BACKOFF)}, "it would be skipped: failure: 2 failures in a row"),
        (FAILED, {}, None),
    ],
)
def test_what_would_hold_a_plan_time_to_come(lane: Lane, options: dict[str, Any], words: str | None) -> None:
    found = explain_plan_time(facts(NOW + MINUTE, lane, **options))
    assert found.verdict == "future"
    assert len(found.facts["held_by"]) == (words is not None)
    assert words is None or words in " ".join(found.words)


def test_nothing_recorded_cannot_be() -> None:
    assert explain_plan_time(facts(5 * MINUTE)).verdict == "unknown"


@pytest.mark.parametrize("kind", ["missed", "skipped", "pruned"])
def test_ranges_that_hold_it(kind: str) -> None:
    found = explain_plan_time(facts(5 * MINUTE, ranges=[Range(4 * MINUTE, 6 * MINUTE, None, kind, "why", 3)]))
    assert (found.verdict, found.facts["reason"], found.facts["count"]) == (kind, "why", 3)
    assert msgspec.json.decode(msgspec.json.encode(found))["verdict"] == kind


def test_explanations_of_plan_times_that_are_switched_off() -> None:
    on = facts(NOW + MINUTE)
    off = msgspec.structs.replace(on, schedule=msgspec.structs.replace(on.schedule, enabled=False))
    assert "Unless that changes, it will not run." in explain_plan_time(off).words
    until = msgspec.structs.replace(on.schedule, paused_at=instant(0), resume_at=instant(NOW + 1))
    assert "It will be planned at" in " ".join(explain_plan_time(msgspec.structs.replace(on, schedule=until)).words)


def run(state: RunState, **changed: Any) -> Run:
    given: dict[str, Any] = {
        "id": "r", "job": "work", "job_version": 1, "queue": "default", "priority": 0, "scope": GLOBAL, "key": None,
        "state": state, "reason": None, "fence": 1, "attempt": 1, "max_attempts": 2, "payload": {}, "result": None,
        "error": None, "created_at": instant(0), "run_at": instant(0), "started_at": None, "finished_at": instant(NOW),
        "retry_of": None, "worker_id": "w", "tags": (), "metadata": {},
    }  # fmt: skip
    return Run(**{**given, **changed})


@pytest.mark.parametrize("state", list(RunState))
def test_every_state_has_words(state: RunState) -> None:
    found = explain_run(RunFacts(run=run(state), now=instant(NOW)))
    assert found.verdict == state.value
    assert found.words
    assert all(word.endswith(".") for word in found.words)


def test_many_runs_that_are_waited_for() -> None:
    waits = [(f"r{number}", None, 0) for number in range(7)]
    found = explain_run(RunFacts(run=run(RunState.SCHEDULED), now=instant(NOW), hold=Hold.BLOCKED, waits_for=waits))
    assert found.words == ("It waits for the end of runs r0, r1, r2, r3, r4 and 2 more.",)
    over = explain_run(RunFacts(run=run(RunState.SCHEDULED), now=instant(NOW), hold=Hold.BLOCKED))
    assert "have ended" in over.words[0]


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ([3], "It waits for the end of run r0."),
        ([1], "It waits for the success of run r0. If that does not succeed, it is skipped."),
        ([2, 2], "It waits for the success of runs r0, r1. If one of them does not succeed, it is cancelled."),
        (
            [1, 2],
            "It waits for the success of runs r0, r1. If one of them does not succeed, it is skipped or cancelled.",
        ),
        ([0, 3], "It waits for the end of runs r0, r1."),
    ],
)
def test_what_it_needs_of_the_runs_that_it_follows(kinds: list[int], words: str) -> None:
    waits = [(f"r{place}", None, kind) for place, kind in enumerate(kinds)]
    found = explain_run(RunFacts(run=run(RunState.SCHEDULED), now=instant(NOW), hold=Hold.BLOCKED, waits_for=waits))
    assert " ".join(found.words) == words


def test_who_waits_for_it() -> None:
    one = explain_run(RunFacts(run=run(RunState.RUNNING), now=instant(NOW), awaited_by=["a"]))
    assert one.words[-1] == "Run a waits for it."
    two = explain_run(RunFacts(run=run(RunState.RUNNING), now=instant(NOW), awaited_by=["a", "b"]))
    assert two.words[-1] == "Runs a, b wait for it."
    assert two.facts["awaited_by"] == ["a", "b"]


def test_a_run_whose_time_came() -> None:
    late = run(RunState.SCHEDULED, run_at=instant(NOW) - timedelta(seconds=1))
    assert "It was due at" in explain_run(RunFacts(run=late, now=instant(NOW), hold=1)).words[0]


MAIL, OTHER_MAIL = LiveWorker("m", ("mail",), ("work",)), LiveWorker("n", ("mail",), ("work",))
DRAINING = LiveWorker("d", ("default",), ("work",), WorkerState.DRAINING)
STOPPING = LiveWorker("s", ("default",), ("work",), WorkerState.STOPPING)
WORKING = LiveWorker("w", ("default",), ("work",))


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        ([MAIL], ["The only live worker does not take runs of queue 'default'."]),
        ([MAIL, OTHER_MAIL], ["None of the 2 live workers takes runs of queue 'default'."]),
        ([MAIL, DRAINING], ["Worker d would take it, but is draining: `rota workers resume d`."]),
        ([STOPPING], ["Worker s would take it, but is stopping."]),
        ([DRAINING, WORKING], ["Nothing holds it back: the next free worker takes it."]),
    ],
)
def test_workers_that_do_not_take_it(workers: list[LiveWorker], words: list[str]) -> None:
    found = explain_run(RunFacts(run=run(RunState.QUEUED), now=instant(NOW), workers=workers))
    assert list(found.words) == words


def test_runs_that_come_before_it_are_counted() -> None:
    one, two = (RunFacts(run=run(RunState.QUEUED), now=instant(NOW), workers=[WORKING], before=n) for n in (1, 2))
    assert explain_run(one).words == ("1 run of its queue comes before it.",)
    assert explain_run(two).words == ("2 runs of its queue come before it.",)
