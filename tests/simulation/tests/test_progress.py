"""The checker finds what it is for in steps, notes, shields and transactions: each broken by hand."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tests.simulation.checks.progress import ProgressChecks, transactions_are_whole
from tests.simulation.tests.test_checker import DONE, HELD, NOW, RUN, SECOND
from tests.simulation.world.gate import Writing
from tests.simulation.world.history import Call, Diary, StepDeed
from tests.simulation.world.note_observer import Effect, Note
from tests.simulation.world.observer import Change, Seen
from tests.simulation.world.world import World

STEPPED = msgspec.structs.replace(RUN, job="stepped")


def held(**facts: Any) -> Seen:
    return msgspec.structs.replace(STEPPED, lease=msgspec.structs.replace(HELD, **facts))


def ended(**facts: Any) -> Seen:
    return msgspec.structs.replace(STEPPED, end=msgspec.structs.replace(DONE, **facts))


def step(
    id: str = "fetch", state: str = "succeeded", fence: int = 1, result: str | None = '"got"', no: int = 1
) -> Note:
    row = (STEPPED.id, id, no, state, fence, result)
    return Note("step", STEPPED.id, fence, row, id, no, state, result if state == "succeeded" else None)


def deed(what: Any, id: str = "fetch", result: str = "", fence: int = 1, how: str = "", at: float = 5.0) -> StepDeed:
    return StepDeed(at, "a", "a@1", what, STEPPED.id, "stepped", fence, id, how, result)


def a_world(seen: Seen | None = None, *notes: Note, effects: tuple[Effect, ...] = (), stopping: bool = False) -> World:
    note_observer = SimpleNamespace(
        steps={(note.run_id, note.id): note for note in notes if note.kind == "step"},
        steps_of=lambda run_id: {note.id: note for note in notes if note.run_id == run_id},
        progress={note.run_id: note for note in notes if note.kind == "progress"},
        lines={},
        effects=list(effects),
    )
    world = SimpleNamespace(
        observer=SimpleNamespace(runs={seen.id: seen} if seen else {}),
        note_observer=note_observer,
        diary=Diary(),
        script=SimpleNamespace(entries=[]),
        processes={"a": SimpleNamespace(stopping=stopping)},
        is_stopping=lambda _worker: stopping,
        writings={},
        deaths={},
    )
    return cast("World", world)


def broken_by(world: World, *deeds: StepDeed) -> list[str]:
    checks, found = ProgressChecks(world), []
    for one in deeds:
        world.diary.steps.append(one)
        found += [promise for promise, _ in checks.did(one)]
    return found


def noted(
    world: World,
    before: Note | None,
    after: Note | None,
    *deeds: StepDeed,
    worker: str = "a@1",
    op: str = "NoteStore.write",
) -> list[str]:
    checks = ProgressChecks(world)
    for one in deeds:
        list(checks.did(one))
    return [promise for promise, _ in checks.noted(before, after, op, worker)]


def test_a_step_that_is_recorded_is_not_begun_again_by_whoever_has_the_lease() -> None:
    assert broken_by(a_world(held(), step()), deed("begins")) == ["P16"]
    assert broken_by(a_world(held(), step(state="failed")), deed("begins")) == []
    assert broken_by(a_world(held(fence=2), step()), deed("begins")) == [], "a zombie cannot know"


def test_what_a_handler_gets_is_what_is_recorded() -> None:
    assert broken_by(a_world(held(), step()), deed("gets", result="got")) == []
    assert broken_by(a_world(held(), step()), deed("gets", result="other")) == ["P16"]
    assert broken_by(a_world(held(), step(state="running")), deed("gets", result="got")) == ["P16"]
    assert broken_by(a_world(held()), deed("gets", result="got")) == ["P16"]


def test_a_recorded_success_does_not_change_or_vanish_and_is_what_was_done() -> None:
    done = deed("does", result="got")
    assert noted(a_world(held()), step(state="running"), step(), done) == []
    assert noted(a_world(held()), None, step(), deed("does", result="other")) == ["P16"]
    assert noted(a_world(held()), step(), step(state="running")) == ["P16"]
    assert noted(a_world(held()), step(), None) == ["P16"]
    assert noted(a_world(), step(), None) == [], "it went with its run"


@pytest.mark.parametrize("seen", [held(fence=2), ended(), None])
def test_a_note_under_another_fence(seen: Seen | None) -> None:
    assert noted(a_world(seen), None, step(state="running")) == ["P10"]
    assert noted(a_world(seen), None, Note("log", STEPPED.id, 1, (STEPPED.id, 1, 1, "[]"))) == ["P10"]


def test_last_words_come_with_the_transaction_that_ends_the_run() -> None:
    words = step(state="running")
    assert noted(a_world(ended()), None, words, op="GateSession.within") == []
    assert noted(a_world(ended()), None, words, op="GateSession.within", worker="b@1") == ["P10"]
    assert noted(a_world(ended(fence=2)), None, words, op="GateSession.within") == ["P10"]


def test_a_note_by_another_worker() -> None:
    assert noted(a_world(held()), None, step(state="running"), worker="b@1") == ["P10"]


@pytest.mark.parametrize(
    ("from_step", "there", "expected"),
    [
        (None, {"fetch", "pay"}, []),
        (None, {"fetch"}, ["P16"]),
        ("pay", {"fetch"}, []),
        ("pay", {"fetch", "pay"}, ["P16"]),
        (None, {"fetch", "pay", "store"}, ["P16"]),
    ],
)
def test_steps_that_a_retry_keeps(from_step: str | None, there: set[str], expected: list[str]) -> None:
    old = [step("fetch"), step("pay", no=2), step("store", "failed", no=3)]
    again = msgspec.structs.replace(STEPPED, id="run-000002", retry_of=STEPPED.id)
    kept = [msgspec.structs.replace(note, run_id=again.id, fence=0) for note in old if note.id in there]
    world = a_world(again, *old, *kept)
    options = {"keep_steps": True} | ({"from_step": from_step} if from_step else {})
    world.diary.calls.append(Call(1.0, "client-1", "retry", STEPPED.id, options=options))
    made = Change(2.0, NOW, "client-1", "client-1@1", "Store.enqueue_keeping", None, again)
    assert [promise for promise, _ in ProgressChecks(world).kept(made)] == expected


def test_a_shielded_step_is_shielded_while_it_works_and_not_longer() -> None:
    shielded, bare = held(shielded=1), held()
    assert broken_by(a_world(shielded), deed("begins", "pay")) == []
    assert broken_by(a_world(bare), deed("begins", "pay")) == ["P15"]
    assert broken_by(a_world(bare), deed("begins", "fetch")) == []
    assert broken_by(a_world(shielded, step("pay")), deed("gets", "pay", "got")) == ["P15"]
    both = [deed("begins", "pay"), deed("begins", "ship"), deed("leaves", "pay", "ValueError")]
    assert broken_by(a_world(shielded), *both) == []
    assert broken_by(a_world(shielded), both[0], both[2]) == ["P15"]


def test_a_shielded_step_is_not_interrupted_by_a_cancel() -> None:
    begun, asked = deed("begins", "pay"), held(shielded=1, cancel_at=NOW)
    assert broken_by(a_world(asked), begun, deed("cut", "pay", "CancelledError")) == ["P15"]
    assert broken_by(a_world(asked), begun, deed("cut", "pay", "Cancelled")) == ["P15"]
    assert broken_by(a_world(held(shielded=1)), begun, deed("cut", "pay", "CancelledError")) == []
    assert broken_by(a_world(asked, stopping=True), begun, deed("cut", "pay", "CancelledError")) == []
    late = [deed("begins", "ship"), deed("cut", "ship", "CancelledError", at=10.0)]
    assert broken_by(a_world(asked), *late) == []


GRACE = NOW + 3 * SECOND


@pytest.mark.parametrize(
    ("was", "now", "op", "promises"),
    [
        ({}, {"shielded": 1}, "NoteStore.shield", []),
        ({"cancel_at": NOW}, {"shielded": 1, "cancel_at": NOW}, "NoteStore.shield", ["P15"]),
        ({"shielded": 1, "cancel_at": NOW}, {"cancel_at": GRACE}, "NoteStore.unshield", []),
        ({"shielded": 1, "cancel_at": NOW}, {"cancel_at": NOW}, "NoteStore.unshield", ["P15"]),
        ({"shielded": 1, "cancel_at": NOW}, None, "Store.reap", ["P15"]),
        ({"shielded": 1, "cancel_at": NOW, "expires_at": NOW - 1}, None, "Store.reap", []),
    ],
)
def test_shields_and_cancels(was: dict[str, int], now: dict[str, int] | None, op: str, promises: list[str]) -> None:
    after = ended(state="cancelled") if now is None else held(**now)
    one = Change(10.0, NOW, "a", "a@1", op, held(**was), after)
    assert [promise for promise, _ in ProgressChecks(a_world()).shields_and_cancels(one)] == promises


def test_a_shield_that_is_lifted_while_its_step_works() -> None:
    checks = ProgressChecks(a_world(held(shielded=1)))
    list(checks.did(deed("begins", "pay")))
    one = Change(10.0, NOW, "a", "a@1", "NoteStore.unshield", held(shielded=1), held())
    assert [promise for promise, _ in checks.shields_and_cancels(one)] == ["P15"]


@pytest.mark.parametrize(("fence", "done", "lines", "promises"), [(1, 700, 1, []), (1, 600, 1, ["notes"]),
    (2, 700, 1, ["notes"]), (1, 700, 0, ["notes"])])  # fmt: skip
def test_what_was_said_is_there_when_the_end_is_told(fence: int, done: int, lines: int, promises: list[str]) -> None:
    world = a_world(ended(), Note("progress", STEPPED.id, fence, (STEPPED.id, fence, done, NOW)))
    world.note_observer.lines[STEPPED.id, 1] = lines
    world.diary.said[STEPPED.id, 1], world.diary.lines[STEPPED.id, 1] = 7, 1
    one = Change(10.0, NOW, "a", "a@1", "Store.report", held(), ended())
    checks = ProgressChecks(world)
    assert list(checks.notes_come_before_reports(one)) == [], "its handler still goes on"
    world.diary.ended.add((STEPPED.id, 1))
    assert [promise for promise, _ in checks.notes_come_before_reports(one)] == promises


@pytest.mark.parametrize(("how", "recorded", "promises"), [("", "succeeded", []), ("", "running", ["P16"]),
    ("raise", "running", [])])  # fmt: skip
def test_what_a_step_has_done_is_recorded_when_the_end_is_told(how: str, recorded: str, promises: list[str]) -> None:
    world = a_world(ended(), step(state=recorded))
    world.diary.ended.add((STEPPED.id, 1))
    checks = ProgressChecks(world)
    list(checks.did(deed("does", result="got", how=how)))
    one = Change(10.0, NOW, "a", "a@1", "Store.report", held(), ended())
    assert [promise for promise, _ in checks.notes_come_before_reports(one)] == promises


@pytest.mark.parametrize(("writings", "promises"), [(2 * [Writing(9.0, 9.1)], ["P16"]), (3 * [Writing(9.0, 9.1)], []),
    ([Writing(2.0)], []), (3 * [Writing(9.0, 9.1, failed=False)], ["P16"])])  # fmt: skip
def test_a_report_goes_without_what_could_not_be_written(writings: list[Writing], promises: list[str]) -> None:
    world = a_world(ended())
    world.diary.ended.add((STEPPED.id, 1))
    world.writings["a"] = writings
    checks = ProgressChecks(world)
    list(checks.did(deed("does", result="got")))
    one = Change(10.0, NOW, "a", "a@1", "Store.report", held(), ended())
    assert [promise for promise, _ in checks.notes_come_before_reports(one)] == promises


END, LEASE = Effect(STEPPED.id, 1, 1), Effect(STEPPED.id, 1, 0)


@pytest.mark.parametrize(
    ("effect", "seen", "promises"),
    [
        (END, ended(), []),
        (END, held(), ["P10"]),
        (END, ended(fence=2), ["P10"]),
        (END, ended(state="failed"), ["P10"]),
        (LEASE, held(), []),
        (LEASE, held(fence=2), ["P10"]),
        (LEASE, ended(), ["P10"]),
    ],
)
def test_what_a_transaction_did(effect: Effect, seen: Seen, promises: list[str]) -> None:
    checks = ProgressChecks(a_world(seen, effects=(effect,)))
    assert [promise for promise, _ in checks.committed(effect)] == promises


def test_two_transactions_that_end_one_run() -> None:
    checks = ProgressChecks(a_world(ended(), effects=(END, END)))
    assert [promise for promise, _ in checks.committed(END)] == ["P10"]


def test_an_end_without_its_transaction() -> None:
    for effects, expected in (((), ["P10"]), ((END,), [])):
        world = a_world(ended(), effects=effects)
        world.diary.steps.append(deed("finishes", "tx"))
        assert [promise for promise, _ in transactions_are_whole(world)] == expected
