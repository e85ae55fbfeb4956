"""Audit trails derived from facts, also from records of older programs; nothing is invented."""

from typing import Any

import msgspec

from rota.core.ledger.audit import Event, Note, Revised, RunFacts, Tried, event_of, history_of, life_of, type_of
from rota.core.states import Outcome, RunState

S = 1_000_000


def facts(**known: Any) -> RunFacts:
    """Return the facts of a run that was created at 0."""
    blank: dict[str, Any] = {
        "id": "a", "made_by": "client", "created_at": 0, "run_at": 0, "made_of": {}, "state": None, "fence": None,
        "finished_at": None, "reason": None, "cancelled_by": None, "waits_as": None, "tried": (), "notes": (),
    }  # fmt: skip
    return RunFacts(**(blank | known))


def note(seq: int, at: int, type: str, fence: int | None = None, **details: Any) -> Note:  # noqa: A002
    return Note(seq, at, "run", "a", type, "ann", fence, details)


def told(events: list[Event]) -> list[tuple[str, str | None, str | None]]:
    return [(event.type, event.from_state, event.to_state) for event in events]


def test_an_attempt_whose_end_an_older_program_recorded() -> None:
    """Conclude the state after a lost attempt; whether a failed one waited for its retry stays unknown."""
    lost = Tried(1, 1, "w", 1, 2 * S, Outcome.LOST)
    failed = Tried(3, 2, "w", 3 * S, 4 * S, Outcome.FAILED)
    running = Tried(4, 3, "w", 5 * S)
    assert told(life_of(facts(tried=(lost, failed, running)))) == [
        ("created", None, "queued"),
        ("claimed", "queued", "running"),
        ("lost", "running", "queued"),
        ("claimed", "queued", "running"),
        ("failed", "running", None),
        ("claimed", "queued", "running"),
    ]


def test_the_last_attempt_of_an_older_program_ended_the_run_if_their_fences_say_so() -> None:
    failed = Tried(1, 1, "w", 1, 2 * S, Outcome.FAILED)
    over = facts(state=RunState.FAILED, fence=1, finished_at=2 * S, tried=(failed,))
    assert told(life_of(over))[-1] == ("failed", "running", "failed")
    later = facts(state=RunState.CANCELLED, fence=2, finished_at=9 * S, cancelled_by="ann", tried=(failed,))
    *_, end = life_of(later)
    assert told(life_of(later))[-2:] == [("failed", "running", None), ("cancelled", None, "cancelled")]
    assert end.actor == "ann"


def test_fences_order_what_a_clock_set_back_has_mixed_up() -> None:
    first = Tried(1, 1, "w", 50 * S, 60 * S, Outcome.FAILED, RunState.QUEUED)
    second = Tried(2, 2, "w", 10 * S)
    asked = note(1, 11 * S, "cancel_asked", 2, **{"from": "running", "to": "cancelling"})
    assert [event.type for event in life_of(facts(tried=(second, first), notes=(asked,)))] == [
        "created", "claimed", "failed", "claimed", "cancel_asked",
    ]  # fmt: skip


def test_a_note_that_changes_no_state_and_has_no_fence_comes_when_it_was_made() -> None:
    tried = Tried(1, 1, "w", 10, 20, Outcome.FAILED, RunState.QUEUED)
    for at, place in ((5, 1), (15, 2), (25, 3)):
        events = life_of(facts(tried=(tried,), waits_as=RunState.QUEUED, notes=(note(1, at, "remarked"),)))
        assert events[place].type == "remarked"
        assert (events[place].from_state, events[place].to_state) == (None, None)


def test_it_reads_in_json_as_the_contract_says() -> None:
    change = {"from": "queued", "to": "cancelled", "due_at": 2 * S, "act": "x", "reason": None}
    assert msgspec.to_builtins(event_of(note(7, S, "cancelled", 1, **change))) == {
        "seq": 7, "at": "1970-01-01T00:00:01Z", "kind": "run", "subject": "a", "type": "cancelled", "from": "queued",
        "to": "cancelled", "fence": 1, "actor": "ann", "details": {"due_at": "1970-01-01T00:00:02Z"},
    }  # fmt: skip


def test_a_schedule_has_one_line_for_each_act() -> None:
    revisions = [
        Revised(1, 0, "created", "code"),
        Revised(2, 5, "paused: why", "ann"),
        Revised(3, 5, "job paused", "bob"),
        Revised(4, 9, "time zone data 2026a", "planner"),
    ]
    notes = [
        Note(1, 0, "schedule", "s", "created", "code", None, {"revision": 1}),
        Note(2, 0, "schedule", "s", "triggered", "ann", None, {"runs": ["a"]}),
        Note(3, 5, "schedule", "s", "paused", "ann", None, {"revision": 2, "reason": "why"}),
    ]
    events = history_of("s", reversed(revisions), reversed(notes))
    assert [event.type for event in events] == ["created", "triggered", "paused", "job_paused", "zones_changed"]
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert events[2].details == {"revision": 2, "reason": "why"}
    assert events[3].actor == "bob"


def test_notes_of_revisions_in_one_word() -> None:
    notes = {
        "created": "created", "edited": "updated", "paused": "paused", "paused: why: not": "paused",
        "paused, and caught up with (all)": "paused", "resumed": "resumed", "deleted": "deleted",
        "job cancelled": "job_cancelled", "job deleted": "disabled",
        "applied by file:x": "applied", "declaration changed": "declared",
        "ended: its max_runs were 3": "ended", "whatever": "updated",
    }  # fmt: skip
    assert {words: type_of(words) for words in notes} == notes
    assert type_of(None) == "updated"
