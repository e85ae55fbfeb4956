"""Audit trail of a run, a schedule, a job or a queue, in order; much of it is derived from other facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.core.states import FINAL_STATES, Outcome, RunState
from rota.values.instants import instant

KINDS = (
    *("run", "job", "schedule", "queue", "worker", "token", "quota", "notification", "bulk", "attention", "database"),
)

PLANNER, CLIENT, PROMOTER, REAPER = "planner", "client", "promoter", "reaper"
EXTERNAL, CONDUCTOR, MESSENGER = "external", "conductor", "messenger"
"""Actors that are neither people nor workers nor policies."""

CANCEL_ASKED, RELEASED, REPLACED, RETRIED = "cancel_asked", "released", "replaced", "retried"
HANDED_OVER, STEP_ENDED, ADVANCED = "handed_over", "step_ended", "advanced"
RESTRICTED, CONDUCTS, CLEARED = "restricted", "conducts", "cleared"
TRIGGERED, BACKFILLED = "triggered", "backfilled"

_S = RunState
_HELD = (_S.RUNNING, _S.WAITING, _S.CANCELLING)
_INSTANTS = ("_at", "plan_time")
_OMITTED = ("from", "to", "schedule_id", "first_due_at", "act")
_LEASE_TAKEN = (Outcome.LOST, Outcome.HANDED_BACK)
_CLAIM, _WHILE_HELD, _END, _WHILE_WAITING = range(4)


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False, rename={"from_state": "from", "to_state": "to"}
):
    """Line of the audit trail. Older programs did not record states."""

    seq: int
    """Number that orders the lines of one answer: from 1 in the trail of a run or a schedule, else the line's own."""
    at: datetime
    kind: str
    """Kind of the subject: `run`, `schedule`, `job`, `worker` and others."""
    subject: str
    type: str
    """What happened: `enqueued`, `claimed`, `paused` and others."""
    from_state: RunState | None = None
    """State of the run before, where it changed."""
    to_state: RunState | None = None
    """State of the run after, where it changed."""
    fence: int | None = None
    actor: str | None = None
    details: dict[str, Any] = {}


def event_in(plain: Mapping[str, Any]) -> Event:
    """Read an event from JSON, including the instants in its details."""
    event = msgspec.convert(plain, Event)
    details = {name: _read_detail(name, fact) for name, fact in event.details.items()}
    return msgspec.structs.replace(event, details=details)


def _read_detail(name: str, fact: Any) -> Any:
    if not name.endswith(_INSTANTS) or not isinstance(fact, str):
        return fact
    try:
        return msgspec.convert(fact, datetime)
    except msgspec.ValidationError:
        return fact


class Note(msgspec.Struct, frozen=True):
    """Audit line as stored, written in the transaction of the act itself."""

    seq: int
    at: int
    kind: str
    subject: str
    type: str
    actor: str | None
    fence: int | None
    details: dict[str, Any]


class Tried(msgspec.Struct, frozen=True):
    """Attempt. `left_as` is the run's state after it: None while it runs, or if an older program did not record it."""

    fence: int
    no: int
    worker_id: str
    claimed_at: int
    ended_at: int | None = None
    outcome: Outcome | None = None
    left_as: RunState | None = None
    due_at: int | None = None
    error: str | None = None


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Stored facts of a run. `state` is None while it is live; `waits_as` is `scheduled` or `queued`, if it waits."""

    id: str
    made_by: str | None
    created_at: int
    run_at: int
    made_of: Mapping[str, Any]
    state: RunState | None
    fence: int | None
    finished_at: int | None
    reason: str | None
    cancelled_by: str | None
    waits_as: RunState | None
    tried: Sequence[Tried]
    notes: Sequence[Note]


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """Change as far as it is known. `before` is a state that it must have started from."""

    fence: int
    phase: int
    at: int
    type: str
    seq: int = 0
    before: RunState | None = None
    after: RunState | None = None
    due_at: int | None = None
    actor: str | None = None
    details: Mapping[str, Any] = {}


def life_of(run: RunFacts) -> list[Event]:
    """Return every state change of a run, ordered by fence, which no clock can disturb."""
    written = [note for note in run.notes if note.type not in (RETRIED, ADVANCED)]
    steps = [step for tried in run.tried for step in _attempt(run, tried)]
    conducts = {note.fence for note in written if note.type == CONDUCTS}
    steps += [_noted(note, run.tried, conducts) for note in written]
    # Not by time: the clocks of hosts differ, and may go back. Fences only grow.
    steps.sort(key=lambda step: (step.fence, step.phase, step.seq))
    steps.insert(0, _creation(run, steps))
    changes = list(_replayed(run, steps))
    return [_event(place, run.id, was, step) for place, (was, step) in enumerate(changes, 1)]


def _creation(run: RunFacts, following: Sequence[_Step]) -> _Step:
    retried = next((note for note in run.notes if note.type == RETRIED), None)
    made_by = run.made_by if retried is None else retried.actor
    made_of = run.made_of
    if retried is not None and "edited" in retried.details:
        made_of = {**made_of, "edited": retried.details["edited"]}
    creation = _Step(fence=0, phase=_CLAIM, at=run.created_at, type="created", actor=made_by, details=made_of)
    if run.state is _S.SKIPPED and not run.fence and not following:  # it was inserted as skipped
        details = {**made_of, "reason": run.reason}
        actor = run.cancelled_by or made_by
        return msgspec.structs.replace(creation, type="skipped", after=run.state, actor=actor, details=details)
    due_at = next((note.details["first_due_at"] for note in run.notes if note.type == REPLACED), run.run_at)
    begins_as = next((step.before for step in following if step.before is not None), run.waits_as)
    waits = due_at > run.created_at or begins_as is _S.SCHEDULED  # for its time, or for its predecessors
    state = _S.SCHEDULED if waits else _S.QUEUED
    return msgspec.structs.replace(creation, after=state, due_at=due_at)


def _attempt(run: RunFacts, tried: Tried) -> Iterator[_Step]:
    fence, details = tried.fence, {"attempt": tried.no}
    yield _Step(
        fence=fence, phase=_CLAIM, at=tried.claimed_at, type="claimed", before=_S.QUEUED, after=_S.RUNNING,
        actor=tried.worker_id, details=details,
    )  # fmt: skip
    if tried.outcome is None or tried.ended_at is None:
        return
    notes = {note.type: note for note in run.notes if note.fence == fence}
    handed_over = HANDED_OVER in notes
    ended_as = tried.outcome.value
    if ADVANCED in notes:
        details = {**details, **notes[ADVANCED].details}
        ended_as = RunState.CANCELLED if tried.left_as is RunState.CANCELLED else ADVANCED
    elif handed_over and tried.outcome is Outcome.SNOOZED:
        ended_as = STEP_ENDED
    yield _Step(
        fence=fence, phase=_END, at=tried.ended_at, type=ended_as,
        after=_left_as(run, tried), due_at=tried.due_at, actor=_ended_by(tried, handed_over),
        details={**details, **_error_details(tried.error), **({"due_at": tried.due_at} if tried.due_at else {})},
    )  # fmt: skip


def _ended_by(tried: Tried, handed_over: bool) -> str:
    if tried.outcome is Outcome.LOST or (handed_over and tried.outcome is Outcome.TIMED_OUT):
        return REAPER
    return EXTERNAL if handed_over else tried.worker_id


def _left_as(run: RunFacts, tried: Tried) -> RunState | None:
    """Return the state after an attempt, derived where an older program did not record it.

    The run's fence tells whether the attempt ended it; a run whose lease was taken away is queued.
    """
    if tried.left_as is not None:
        return tried.left_as
    taken_away = tried.outcome in _LEASE_TAKEN
    if run.state is not None and run.fence == tried.fence + taken_away:
        return run.state
    return _S.QUEUED if taken_away else None


def _error_details(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    error = msgspec.json.decode(text)
    return {"error": {key: error[key] for key in ("type", "message", "code") if error.get(key) is not None}}


def _noted(note: Note, tried: Sequence[Tried], conducts: Collection[int | None]) -> _Step:
    before, after = _changes(note)
    fence = note.fence
    if fence is None:
        fence = max((attempt.fence for attempt in tried if attempt.claimed_at <= note.at), default=0)
    held = fence in conducts or any(_holds(attempt, fence, note.at) for attempt in tried)
    held = before in _HELD if before is not None else held
    return _Step(
        fence=fence, phase=_phase(note, held=held), at=note.at, type=note.type, seq=note.seq,
        before=before, after=after, due_at=note.details.get("due_at"), actor=note.actor, details=note.details,
    )  # fmt: skip


def _phase(note: Note, *, held: bool) -> int:
    """Return the place within a fence: a conducting run begins with its note, as others begin with their claim."""
    if note.type == CONDUCTS:
        return _CLAIM
    return _WHILE_HELD if held else _WHILE_WAITING


def _holds(tried: Tried, fence: int, at: int) -> bool:
    return tried.fence == fence and (tried.ended_at is None or at <= tried.ended_at)


def _is_due_by(run: RunFacts, due_at: int, following: Sequence[_Step]) -> bool:
    """Return whether a scheduled run was due before the first of these changes.

    A change that has no states tells only its time.
    """
    step = following[0]
    if step.before is not None or step.after is not None or step.phase == _END:
        return step.before is _S.QUEUED
    begins_as = next((change.before for change in following if change.before is not None), run.waits_as)
    return begins_as is _S.QUEUED and due_at <= step.at


def _replayed(run: RunFacts, steps: Sequence[_Step]) -> Iterator[tuple[RunState | None, _Step]]:
    """Yield each change with the state before it, and the promotions to `queued` between them, which are not stored."""
    state: RunState | None = None
    due_at: int | None = None
    fence = 0
    for place, step in enumerate(steps):
        if state is _S.SCHEDULED and due_at is not None and _is_due_by(run, due_at, steps[place:]):
            yield state, _due(due_at, fence)
            state = _S.QUEUED
        yield step.before or state, step
        state = state if step.after is None and step.phase != _END else step.after
        due_at, fence = step.due_at or due_at, step.fence
    if run.waits_as is _S.QUEUED and state is _S.SCHEDULED and due_at is not None:
        yield state, _due(due_at, fence)
    if run.state is not None and state not in FINAL_STATES and run.finished_at is not None:
        yield None, _unwitnessed_end(run, run.state, run.finished_at)


def _due(at: int, fence: int) -> _Step:
    return _Step(fence=fence, phase=_WHILE_WAITING, at=at, type="due", after=_S.QUEUED, actor=PROMOTER)


def _unwitnessed_end(run: RunFacts, state: RunState, at: int) -> _Step:
    """Build the end that an older program, which writes no notes, left behind: the state before it is not known."""
    return _Step(
        fence=run.fence or 0, phase=_WHILE_WAITING, at=at, type=state.value, after=state, actor=run.cancelled_by,
        details={} if run.reason is None else {"reason": run.reason},
    )  # fmt: skip


def _event(seq: int, run_id: str, was: RunState | None, step: _Step) -> Event:
    changed = step.after is not None and step.after is not was
    return Event(
        seq=seq,
        at=instant(step.at),
        kind="run",
        subject=run_id,
        type=step.type,
        from_state=was if changed or step.phase == _END else None,
        to_state=step.after if changed else None,
        fence=step.fence,
        actor=step.actor,
        details=_shown_details(step.details),
    )


def event_of(note: Note, seq: int | None = None) -> Event:
    before, after = _changes(note)
    changed = before is not after
    return Event(
        seq=note.seq if seq is None else seq,
        at=instant(note.at),
        kind=note.kind,
        subject=note.subject,
        type=note.type,
        from_state=before if changed else None,
        to_state=after if changed else None,
        fence=note.fence,
        actor=note.actor,
        details=_shown_details(note.details),
    )


def _changes(note: Note) -> tuple[RunState | None, RunState | None]:
    before, after = note.details.get("from"), note.details.get("to")
    return RunState(before) if before else None, RunState(after) if after else None


def _shown_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare details for readers: convert instants, and drop keys that the event has as fields."""
    return {
        key: instant(value) if key.endswith(_INSTANTS) and isinstance(value, int) else value
        for key, value in details.items()
        if key not in _OMITTED and value is not None
    }


class Revised(msgspec.Struct, frozen=True):
    """Revision of a schedule as stored."""

    no: int
    made_at: int
    note: str | None
    actor: str | None


_TYPES = {
    "created": "created", "edited": "updated", "paused": "paused", "resumed": "resumed", "deleted": "deleted",
    "restored": "restored", "job paused": "job_paused", "job resumed": "resumed", "job cancelled": "job_cancelled",
    "job deleted": "disabled", "declaration changed": "declared", "ended": "ended",
}  # fmt: skip


def type_of(note: str | None) -> str:
    """Return the event type that a revision's note stands for."""
    words = (note or "").partition(":")[0].partition(",")[0]
    if words.startswith("applied by "):
        return "applied"
    return "zones_changed" if words.startswith("time zone data") else _TYPES.get(words, "updated")


def history_of(name: str, revisions: Iterable[Revised], notes: Iterable[Note]) -> list[Event]:
    """Merge a schedule's revisions with the notes that belong to no revision: one line for each act."""
    lines: list[tuple[tuple[int, int, int, int], Note]] = []
    noted, latest = set(), 0
    for note in sorted(notes, key=lambda note: note.seq):
        own = note.details.get("revision")
        latest = own or latest
        noted.add(own)
        lines.append(((note.at, latest, int(own is None), note.seq), note))
    for revision in revisions:
        if revision.no not in noted:
            details = {"revision": revision.no, "note": revision.note}
            note = Note(0, revision.made_at, "schedule", name, type_of(revision.note), revision.actor, None, details)
            lines.append(((revision.made_at, revision.no, 0, 0), note))
    lines.sort(key=lambda line: line[0])
    return [event_of(note, place) for place, (_, note) in enumerate(lines, 1)]
