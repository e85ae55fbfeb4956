"""What runs have said and done by each commit, as anybody can read it: steps, progress, logs, and their own effects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from tests.simulation.world.backends import Backend

KEEPING = "Store.enqueue_keeping"
SEALING = "GateSession.within"
ANSWERING = "ExternalStore.finish"
NOTING = ("NoteStore.write", "NoteStore.unshield")
_WRITING = (*NOTING, KEEPING, SEALING, ANSWERING)
_PRUNING = ("drop_runs", "drop_skips")

_STEPS = """
select run_id, id, no, state, fence, attempt, done, result, error, kept_from, started_at, finished_at from rota_step
order by run_id, id
"""
_PROGRESS = "select run_id, fence, done, at from rota_progress order by run_id"
_LOGS = "select run_id, fence, no, lines from rota_log order by run_id, fence, no"
_EFFECTS = "select run_id, fence, finishing from proof_effect order by run_id, fence, finishing"

Kind = Literal["step", "progress", "log"]


class Note(msgspec.Struct, frozen=True):
    """A row, under the fence that wrote it last. Of a step: its number, its state, and its result as JSON."""

    kind: Kind
    run_id: str
    fence: int
    row: tuple[Any, ...]
    id: str = ""
    no: int = 0
    state: str = ""
    result: str | None = None
    kept_from: str | None = None

    def __str__(self) -> str:
        what = f"{self.id} {self.state} {self.result or ''}" if self.kind == "step" else str(self.row[2])
        return f"{self.kind} of {self.run_id[-6:]} (fence {self.fence}): {what}"


class Effect(msgspec.Struct, frozen=True, order=True):
    run_id: str
    fence: int
    finishing: int


class NoteObserver:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known: dict[tuple[object, ...], Note] = {}
        self.steps: dict[tuple[str, str], Note] = {}
        self.progress: dict[str, Note] = {}
        self.lines: dict[tuple[str, int], int] = {}
        self.effects: list[Effect] = []

    def look_anew(self) -> None:
        """Know nothing but what is there now: the database has lost what it was."""
        self._known.clear()
        self.effects.clear()
        list(self.changes(_PRUNING[0]))
        self.new_effects(SEALING)

    def steps_of(self, run_id: str) -> dict[str, Note]:
        return {id: note for (run, id), note in self.steps.items() if run == run_id}

    def changes(self, op: str) -> Iterator[tuple[Note | None, Note | None]]:
        """(before, after) of every note that is not as it was. Only what may write notes makes it look."""
        if not op.startswith((*_WRITING, *_PRUNING)):
            return
        now = dict(self._read())
        known, self._known = self._known, now
        self.steps = {(note.run_id, note.id): note for note in now.values() if note.kind == "step"}
        self.progress = {note.run_id: note for note in now.values() if note.kind == "progress"}
        self.lines = {}
        for note in now.values():
            if note.kind == "log":
                attempt = note.run_id, note.fence
                self.lines[attempt] = self.lines.get(attempt, 0) + len(msgspec.json.decode(note.row[3]))
        for key, note in now.items():
            if (before := known.get(key)) != note:
                yield before, note
        for key in sorted(known.keys() - now.keys(), key=str):
            yield known[key], None

    def _read(self) -> Iterator[tuple[tuple[object, ...], Note]]:
        for row in self._backend.look(_STEPS):
            run_id, id, no, state, fence, _, _, result, _, kept_from, *_ = row
            kept = None if kept_from is None else str(kept_from)
            yield ("step", str(run_id), id), Note("step", str(run_id), fence, tuple(row), id, no, state, result, kept)
        for row in self._backend.look(_PROGRESS):
            yield ("progress", str(row[0])), Note("progress", str(row[0]), row[1], tuple(row))
        for row in self._backend.look(_LOGS):
            yield ("log", str(row[0]), row[1], row[2]), Note("log", str(row[0]), row[1], tuple(row))

    def new_effects(self, op: str) -> list[Effect]:
        if op != SEALING:
            return []
        now = [Effect(*row) for row in self._backend.look(_EFFECTS)]
        before, self.effects = list(self.effects), now
        for one in before:
            now = list(now)
            now.remove(one)
        return now
