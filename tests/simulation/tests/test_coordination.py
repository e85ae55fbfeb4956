"""The checks of coordination find what they are for: each promise broken by hand, in a history made up for it."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tests.simulation.checks.coordination.dependencies import DependencyChecks
from tests.simulation.checks.coordination.external import ExternalChecks
from tests.simulation.checks.coordination.rates import RateChecks
from tests.simulation.checks.coordination.replicas import ReplicaChecks
from tests.simulation.clients.dependencies import Edge
from tests.simulation.script.entries import Jump
from tests.simulation.tests.test_checker import HELD, NOW, RUN, SECOND, WAITING, change
from tests.simulation.world.history import Call, Deed, Diary
from tests.simulation.world.note_observer import Note
from tests.simulation.world.observer import Change, Conduct, End, Lease, Outside, Place, Seen
from tests.simulation.world.world import World

FIRST, FOLLOWER = "run-000001", "run-000002"
OUT = Outside(fence=1, attempt=1, deadline=NOW + 3 * SECOND, cancel_at=None, step="answer")


def run(id: str = FIRST, job: str = "plain", n: int = 0, **facts: Any) -> Seen:
    return msgspec.structs.replace(RUN, id=id, job=job, payload=f'{{"n": {n}}}', **facts)


def end(state: str, by: str | None = None, worker: str | None = "a@1", fence: int = 1) -> End:
    return End(state, fence, 1, NOW, None, worker, by)


def place(**facts: Any) -> Place:
    return msgspec.structs.replace(WAITING, **facts)


def lease(worker: str, fence: int = 1) -> Lease:
    return msgspec.structs.replace(HELD, worker=worker, fence=fence)


class Looks:
    """Answers of the database, by a word of the question."""

    def __init__(self, **answers: list[tuple[Any, ...]]) -> None:
        self._answers = answers

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        return next((rows for word, rows in self._answers.items() if word in sql), [])


def a_world(*runs: Seen, entries: tuple[Any, ...] = (), **answers: list[tuple[Any, ...]]) -> World:
    known = {one.id: one for one in runs}
    world = SimpleNamespace(
        diary=Diary(),
        changes=[],
        observer=SimpleNamespace(runs=known, live={id: one for id, one in known.items() if one.end is None}),
        backend=SimpleNamespace(look=Looks(**answers)),
        script=SimpleNamespace(entries=list(entries), start=0, engines=3),
        note_observer=SimpleNamespace(steps={}),
        clock=SimpleNamespace(micros=lambda: NOW + 60 * SECOND),
        loop=SimpleNamespace(time=lambda: 60.0),
        is_calm=lambda _since, _until: True,
    )
    return cast("World", world)


def follows(*changes: Change, on: str = "success", otherwise: str = "skip") -> list[str]:
    """What is found of a run with number 1 that follows the one with number 0."""
    latest = {one.run_id: one.after for one in changes if one.after}
    world = a_world(*latest.values())
    world.diary.families = {0: [], 1: [Edge(0, on, otherwise)]}
    checks = DependencyChecks(world)
    made = [change(None, run(FIRST, place=place())), change(None, run(FOLLOWER, n=1, place=place(hold=3)))]
    found = [what for one in (*made, *changes) for check in checks.of_changes() for what in check(one)]
    found += [what for check in checks.of_commits() for what in check()]
    assert {promise for promise, _ in found} <= {"after"}
    return [message for _, message in found]


DONE, FAILED = change(None, run(end=end("succeeded"))), change(None, run(end=end("failed")))
WAITS = run(FOLLOWER, n=1, place=place(hold=3))


def follower(before: Seen, **facts: Any) -> Change:
    return change(before, run(FOLLOWER, n=1, **facts))


def test_a_run_that_follows_another_as_it_should() -> None:
    assert follows(DONE, follower(WAITS, place=place())) == []
    assert follows(FAILED, follower(WAITS, end=end("skipped", "policy:dependency"))) == []
    assert follows(FAILED, follower(WAITS, place=place()), on="end") == []


@pytest.mark.parametrize(
    ("changes", "options", "told"),
    [
        ([follower(WAITS, lease=HELD)], {}, "before the end"),
        ([follower(WAITS, place=place())], {}, "before the end"),
        ([FAILED, follower(WAITS, place=place())], {}, "what it needs was failed"),
        ([DONE, follower(WAITS, end=end("skipped", "policy:dependency"))], {}, "nothing that it follows failed"),
        ([FAILED, follower(WAITS, end=end("cancelled", "policy:dependency"))], {}, "not as it asked"),
        ([FAILED, change(None, WAITS)], {}, "did not come"),
        ([FAILED, change(None, WAITS)], {"on": "end"}, "all that it follows have ended"),
        ([DONE, change(None, WAITS)], {}, "all that it follows have ended"),
    ],
)
def test_a_run_that_follows_another_as_it_should_not(changes: list[Change], options: dict[str, str], told: str) -> None:
    found = follows(*changes, **options)
    assert any(told in message for message in found), found


def hands(one: Change, *calls: Call, act: str = "ask", step: str = "", **answers: Any) -> list[str]:
    world = a_world(*(seen for seen in (one.after,) if seen), **answers)
    world.diary.calls.extend(calls)
    world.diary.deeds.append(Deed(1.0, "a", "a@1", "began", FIRST, 1, 1, f"{act}:0.1 of entry 0"))
    if step:
        world.note_observer.steps = {(FIRST, step): Note("step", FIRST, 1, (), step, 1, "succeeded")}
    checks = ExternalChecks(world)
    found = [what for check in checks.of_changes() for what in check(one)]
    found += [*checks.answers_are_true()]
    for check in checks.of_commits():
        found += [*check(), *check()]
    return [message for _, message in found]


def said(verb: str, fence: int, answer: object = "queued") -> Call:
    return Call(5.0, "client-1", verb, FIRST, answer, answered_at=6.0, options={"fence": fence})


ASKER, OURS = run(job="asker", lease=HELD), run(job="asker", external=OUT)


def ended_outside(fence: int = 1) -> Change:
    return Change(
        10.0,
        NOW,
        "client-1",
        "client-1@1",
        "ExternalStore.finish",
        OURS,
        run(job="asker", end=end("failed", fence=fence)),
    )


def test_what_is_handed_over_for_as_long_as_was_said() -> None:
    assert hands(
        change(ASKER, run(job="asker", external=msgspec.structs.replace(OUT, deadline=NOW + 99 * SECOND)))
    ) == ["handed over for 99s and step answer, not for 3s and answer"]
    assert "does not" in hands(change(ASKER, OURS), act="ok")[0]
    assert "answered already" in hands(change(ASKER, OURS), step="answer")[0]
    moved = run(job="asker", external=msgspec.structs.replace(OUT, deadline=NOW + 99 * SECOND))
    assert "was changed" in hands(change(OURS, moved))[0]


def test_an_end_from_outside_that_nobody_said() -> None:
    assert hands(ended_outside(), said("fail", 1)) == []
    (found,) = hands(
        ended_outside(), said("fail", 2) if False else Call(5.0, "client-1", "fail", FIRST, options={"fence": 2})
    )
    assert "ended under fence 1" in found


def test_an_answer_that_is_not_true() -> None:
    found = hands(ended_outside(), said("fail", 1), said("complete", 1))
    assert [message.partition(":")[0] for message in found] == ["said to be done, and recorded is failed"]
    assert hands(ended_outside(), said("fail", 1), said("complete", 1, "cancelled")) == []


def test_what_is_overdue_is_taken_back() -> None:
    world = a_world(OURS)
    checks, seconds = ExternalChecks(world), iter((20.0, 20.0, 20.0, 60.0, 60.0, 60.0, 60.0))
    world.loop = cast("Any", SimpleNamespace(time=lambda: next(seconds)))
    assert list(checks.taken_back_in_time()) == []
    assert [promise for promise, _ in checks.taken_back_in_time()] == ["P12"]


PARENT = run("parent-001", "pair", conduct=Conduct(1, 1, None))


def child(id: str, **facts: Any) -> Seen:
    return run(id, "pair", parent_id="parent-001", **facts)


def replicas(*children: Seen, parent: Change | None = None, cleared: int = 0, only: str = "") -> list[str]:
    names = [(one.end.worker if one.end else one.lease.worker if one.lease else "@") or "" for one in children]
    known = [
        (one.id, "parent-001", name.rpartition("@")[0] or None, 0, cleared)
        for one, name in zip(children, names, strict=True)
    ]
    overrides = [(f'{{"needs": {{"only_workers": ["{only}"]}}}}' if only else None,)]
    world = a_world(PARENT, *children, rota_replica=known, overrides=overrides)
    checks = ReplicaChecks(world)
    changes = [change(None, one) for one in children] + ([parent] if parent else [])
    found = [what for one in changes for check in checks.of_changes() for what in check(one)]
    found += [what for check in checks.of_commits() for what in check()]
    return [message for _, message in found]


def test_replicas_as_they_should_be() -> None:
    assert replicas(child("c-1", lease=lease("engine-1@1")), child("c-2", lease=lease("engine-2@1"))) == []
    done = [
        child("c-1", end=end("succeeded", worker="engine-1@1")),
        child("c-2", end=end("succeeded", worker="engine-2@1")),
    ]
    over = msgspec.structs.replace(PARENT, conduct=None, end=end("succeeded"))
    assert replicas(*done, parent=change(PARENT, over)) == []


def test_two_replicas_of_one_name_and_one_too_many() -> None:
    twice = replicas(child("c-1", lease=lease("engine-1@1")), child("c-2", end=end("succeeded", worker="engine-1@2")))
    assert "engine-1 has more than one" in twice[0]
    three = replicas(*(child(f"c-{number}", lease=lease(f"engine-{number}@1")) for number in (1, 2, 3)))
    assert "3 live or have succeeded, and 2 are wanted" in three[0]


@pytest.mark.parametrize(
    ("state", "ends", "told"),
    [
        ("succeeded", ("succeeded", "failed"), "succeeded, not failed"),
        ("failed", ("succeeded", "succeeded"), "failed, not succeeded"),
        ("succeeded", ("succeeded", None), "ended before its replicas"),
        ("succeeded", ("succeeded",), "succeeded, not still waiting"),
    ],
)
def test_a_run_that_does_not_end_as_its_replicas_did(state: str, ends: tuple[str | None, ...], told: str) -> None:
    children = [
        child(f"c-{no}", end=end(one, worker=f"engine-{no}@1")) if one else child(f"c-{no}", place=place(hold=6))
        for no, one in enumerate(ends, 1)
    ]
    over = msgspec.structs.replace(PARENT, conduct=None, end=end(state))
    assert any(told in message for message in replicas(*children, parent=change(PARENT, over)))


def test_a_worker_that_may_not_have_it() -> None:
    assert "claimed by engine-1, which may not" in replicas(child("c-1", lease=lease("engine-1@1")), only="engine-2")[0]
    labelled = run(job="graphic", lease=lease("engine-1@1"))
    checks = ReplicaChecks(a_world(labelled, overrides=[(None,)]))
    assert [promise for promise, _ in checks.only_who_may(change(None, labelled))] == ["needs"]
    labelled = run(job="graphic", lease=lease("engine-2@1"))
    assert list(checks.only_who_may(change(None, labelled))) == []


def test_a_lost_replica_that_is_not_freed() -> None:
    was, now = child("c-1", lease=lease("engine-1@1")), child("c-1", place=place(hold=6))
    for outcome, whose, count in (
        ("lost", "engine-1", 1),
        ("lost", None, 0),
        ("failed", None, 1),
        ("failed", "engine-1", 0),
    ):
        checks = ReplicaChecks(a_world(rota_replica=[("c-1", "parent-001", whose, 0, 0)], outcome=[(outcome,)]))
        assert len(list(checks.taken_over_by_others(change(was, now)))) == count


def begins(*seconds: float, entries: tuple[Any, ...] = ()) -> int:
    """How many are too many of a job of which 2 may begin within 3 s."""
    checks, found = RateChecks(a_world(entries=entries)), 0
    for number, at in enumerate(seconds):
        seen = run(f"run-{number}", "rated", lease=HELD)
        one = Change(float(number), int(at * SECOND), "a", "a@1", "Store.claim_limited", None, seen)
        found += len(list(checks.not_too_many(one)))
    return found


def test_more_begin_than_may() -> None:
    assert begins(1, 1.5, 4, 4.5, 7.1) == 0
    assert begins(1, 1.5, 3.9) == 1
    assert begins(10, 10.5, 9.5) == 1  # the clock was set back
    far = Jump(1.5, -60.0)
    assert begins(61, 61.5, 1, 2, entries=(far,)) == 0
    assert begins(61, 61.5, 61.6, entries=(far,)) == 0  # taken to have begun just then
