"""The checker finds what it is for: each promise broken by hand, in a history made up for it."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from rota.store.databases.statements import POSTGRES
from tests.simulation.checks import final_state, limits, runs
from tests.simulation.checks.schedules import Answer, account, named_instants
from tests.simulation.script.entries import AddSchedule
from tests.simulation.world.history import Call, Deed, Diary
from tests.simulation.world.observer import Change, End, Lease, Place, Seen
from tests.simulation.world.world import World

SECOND = 1_000_000
NOW = 1_000 * SECOND
WAITING = Place(fence=0, attempt=0, run_at=NOW, hold=0, limit_key=None)
HELD = Lease(fence=1, attempt=1, worker="a@1", claimed_at=NOW, expires_at=NOW + 9 * SECOND, cancel_at=None)
DONE = End("succeeded", 1, 1, NOW, '{"fence":1}', "a@1", None)
RUN = Seen(
    id="run-000001",
    job="plain",
    created_at=NOW,
    run_at=NOW,
    schedule_id=None,
    plan_time=None,
    scope=("global", "global"),
    max_attempts=4,
    on_lost="retry",
    retry_of=None,
    backfilled=False,
    payload="{}",
    key=None,
    covers_from=None,
    end=None,
    lease=None,
    place=None,
)


def seen(**facts: Any) -> Seen:
    return msgspec.structs.replace(RUN, **facts)


def waiting(**facts: Any) -> Seen:
    return seen(place=msgspec.structs.replace(WAITING, **facts))


def held(**facts: Any) -> Seen:
    return seen(lease=msgspec.structs.replace(HELD, **facts))


def ended(**facts: Any) -> Seen:
    return seen(end=msgspec.structs.replace(DONE, **facts))


def a_world(*changes: Change, outcome: str | None = None, runs: tuple[Seen, ...] = (), **facts: Any) -> World:
    """As much of one as the checks look at."""
    diary = Diary()
    world = SimpleNamespace(
        diary=diary,
        latest_micros=NOW,
        changes=list(changes),
        observer=SimpleNamespace(runs=(known := {run.id: run for run in runs}), live=known),
        backend=SimpleNamespace(look=lambda _sql: [] if outcome is None else [(outcome,)], dialect=POSTGRES),
        script=SimpleNamespace(entries=facts.pop("entries", []), start=0),
        deaths={},
        is_calm=lambda _since, _until: True,
        troubles=[],
        **facts,
    )
    return cast("World", world)


def change(before: Seen | None, after: Seen | None, op: str = "Store.report", worker: str = "a@1") -> Change:
    return Change(10.0, NOW, worker.partition("@")[0], worker, op, before, after)


def broken(*changes: Change, **facts: Any) -> set[str]:
    checks = runs.checks(a_world(**facts))
    return {promise for one in changes for check in checks for promise, _ in check(one)}


CASES: dict[str, tuple[str, list[Change], dict[str, Any]]] = {
    "in two places": ("P12", [change(waiting(), seen(place=WAITING, lease=HELD))], {}),
    "nowhere": ("P12", [change(waiting(), seen())], {}),
    "vanished": ("P7", [change(ended(), None)], {}),
    "pruned while it waits": ("P7", [change(waiting(), None, "drop_runs")], {}),
    "another end": ("P11", [change(ended(), ended(state="failed"))], {}),
    "begun again": ("P11", [change(ended(), waiting())], {}),
    "the fence goes back": ("P9", [change(None, waiting(fence=3)), change(waiting(fence=3), waiting(fence=2))], {}),
    "the same fence twice": ("P9", [change(None, waiting(fence=1)), change(waiting(fence=1), held(worker="b@1"))], {}),
    "reaped, and its fence stays": ("P9", [change(held(expires_at=NOW - 1), waiting(fence=1), "Store.reap")], {}),
    "reaped too early": ("P10", [change(held(), waiting(fence=2), "Store.reap")], {}),
    "ended by another": ("P10", [change(held(), ended(), worker="b@1")], {}),
    "renewed by another": ("P10", [change(held(), held(expires_at=NOW + 99), "Store.extend", "b@1")], {}),
    "the result of another fence": ("P10", [change(held(), ended(result='{"fence":7}'))], {}),
    "planned early": ("P2", [change(None, seen(place=WAITING, plan_time=NOW + 1))], {}),
    "claimed early": ("P2", [change(waiting(run_at=NOW + 1), held(), "Store.claim")], {}),
    "one attempt too many": ("P13", [change(waiting(attempt=4), held(attempt=5), "Store.claim")], {}),
    "a hand-back that costs": ("P13", [change(held(), waiting(fence=2, attempt=1))], {"outcome": "handed_back"}),
    "a failure that is free": (
        "P13",
        [change(held(), waiting(fence=1, run_at=NOW + 9 * SECOND))],
        {"outcome": "failed"},
    ),
    "no backoff": ("P13", [change(held(), waiting(fence=1, attempt=1))], {"outcome": "failed"}),
    "a request forgotten": ("P15", [change(held(cancel_at=NOW), held(), "Store.extend")], {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_broken_promise_is_found(case: str) -> None:
    promise, changes, facts = CASES[case]
    assert promise in broken(*changes, **facts)


def test_an_ordinary_life_breaks_nothing() -> None:
    life = [
        change(None, waiting(), "Store.enqueue", "client@1"),
        change(waiting(), held(), "Store.claim"),
        change(held(), held(expires_at=NOW + runs.LEASE), "Store.extend"),
        change(held(expires_at=NOW - 1), waiting(fence=2, attempt=1), "Store.reap", "b@1"),
        change(waiting(fence=2, attempt=1), held(fence=3, attempt=2, worker="b@1"), "Store.claim", "b@1"),
        change(held(fence=3, attempt=2, worker="b@1"), ended(fence=3, attempt=2, result='{"fence":3}'), worker="b@1"),
        change(ended(fence=3, attempt=2, result='{"fence":3}'), None, "drop_runs"),
    ]
    assert broken(*life) == set()


def test_begun_lost_and_queued_again() -> None:
    world = a_world(outcome="lost")
    world.diary.deeds.append(Deed(1.0, "a", "a@1", "began", RUN.id, 1, 1))
    again = change(
        msgspec.structs.replace(held(), on_lost="fail"), msgspec.structs.replace(waiting(fence=2), on_lost="fail")
    )
    assert "P14" in {promise for check in runs.checks(world) for promise, _ in check(again)}


def test_a_cancel_that_does_nothing() -> None:
    world = a_world()
    world.diary.calls.append(Call(1.0, "client-1", "cancel", RUN.id))
    for one in (
        change(waiting(), waiting(hold=1), "Store.cancel"),
        change(held(), held(expires_at=NOW + 99), "Store.cancel"),
    ):
        assert "P15" in {promise for check in runs.checks(world) for promise, _ in check(one)}


def test_more_at_once_than_a_limit_allows() -> None:
    three = [msgspec.structs.replace(held(), id=f"run-{number}", job="narrow") for number in range(3)]
    for some, expected in ((three[:2], set()), (three, {"P6"})):
        world = a_world(runs=tuple(some))
        assert {promise for check in limits.of_commits(world) for promise, _ in check()} == expected


def test_overlap_that_was_to_be_skipped() -> None:
    definition = '{"overlap":{"mode":"skip"}}'
    first, second = (
        msgspec.structs.replace(waiting(), id=f"run-{number}", schedule_id="s", plan_time=NOW - number)
        for number in range(2)
    )
    entries = [AddSchedule(0.0, "client-1", "schedule-1", {"every": "2s"}, ["ok"])]
    world = a_world(runs=(first, second), entries=entries)
    world.backend.look = lambda sql: [("schedule-1", definition)]  # type: ignore[method-assign]
    (overlap,) = limits.of_changes(world)
    assert [promise for promise, _ in overlap(change(None, second, "PlanningStore.plan"))] == ["P6"]


def test_acknowledged_and_gone() -> None:
    world = a_world()
    world.diary.calls.append(Call(1.0, "client-1", "enqueue", "plain", [("run-x", True)], answered_at=2.0))
    assert [promise for promise, _ in final_state.acknowledged_is_there(world)] == ["P7"]


def test_a_key_with_two_runs() -> None:
    world = a_world()
    for run_id in ("run-x", "run-y"):
        what = "plain x 1 {'idempotency_key': 'first'}"
        world.diary.calls.append(Call(1.0, "client-1", "enqueue", what, [(run_id, True)], answered_at=2.0))
    assert [promise for promise, _ in final_state.one_run_per_idempotency_key(world)] == ["P8"]


def test_begun_without_a_lease_and_twice() -> None:
    world = a_world(change(waiting(), held(), "Store.claim"))
    world.diary.deeds += [
        Deed(1.0, "a", "a@1", "began", RUN.id, 1, 1),
        Deed(2.0, "a", "a@1", "began", RUN.id, 1, 1),
        Deed(3.0, "b", "b@1", "began", RUN.id, 2, 1),
    ]
    assert [promise for promise, _ in final_state.begun_under_a_lease(world)] == ["P9", "P9"]


def test_a_success_that_nobody_had() -> None:
    assert [promise for promise, _ in final_state.successes_are_true(a_world(runs=(ended(),)))] == ["P10"]


def test_a_cancel_that_nobody_heard() -> None:
    world = a_world(change(held(), held(cancel_at=NOW), "Store.cancel"))
    world.diary.deeds.append(Deed(1.0, "a", "a@1", "began", RUN.id, 1, 1, "ok:14 of entry 1"))
    assert [promise for promise, _ in final_state.cancellation_is_heard(world)] == ["P15"]


@pytest.mark.parametrize(
    ("answers", "promises"),
    [
        ([Answer(10, 10, 1, True), Answer(20, 30, 2, False)], set()),
        ([Answer(10, 10, 1, True), Answer(20, 20, 1, True)], {"P1"}),
        ([Answer(10, 10, 1, True), Answer(10, 30, 3, False)], {"P1"}),
        ([Answer(10, 30, 2, False)], {"P4"}),
        ([Answer(10, 30, 3, False), Answer(25, 25, 1, True)], {"P3"}),
        ([Answer(10, 30, 3, False), Answer(25, 25, 1, True, backfilled=True)], set()),
    ],
)
def test_plan_times_and_their_answers(answers: list[Answer], promises: set[str]) -> None:
    assert {promise for promise, _ in account([10, 20, 30], answers)} == promises


def test_what_was_named_while_each_revision_was_in_force() -> None:
    five: dict[str, Any] = {"rule": {"trigger": {"type": "every", "interval": "PT5S"}}}
    four: dict[str, Any] = {"rule": {"trigger": {"type": "every", "interval": "PT4S"}}}
    history = [(0, five, True), (10 * SECOND, five, False), (20 * SECOND, four, True)]
    assert [at // SECOND for at in named_instants(history, 28 * SECOND)] == [5, 10, 24, 28]
