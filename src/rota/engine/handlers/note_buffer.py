"""Buffer of notes (progress, steps, log lines) that a worker's runs write, flushed together twice a second."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from rota.core.progress.notes import (
    LONGEST_LINE,
    LONGEST_LOGGER,
    LogNote,
    Notes,
    ProgressNote,
    StepNote,
    encoded,
    storable,
)
from rota.core.runs.claim import Claim
from rota.errors import RotaError, Unavailable
from rota.store import Store
from rota.store.databases.batcher import Batcher
from rota.values.clock import Clock

T = TypeVar("T")

log = logging.getLogger("rota.worker")

EVERY = 0.4
_REST_AFTER_TROUBLE = 0.5
_BYTES = 4_000_000
_PER_LINE = 40  # bytes that a line costs besides its words


class Line(msgspec.Struct, frozen=True, gc=False):
    """One log line; `at` is monotonic."""

    at: float
    level: int
    logger: str
    text: str

    @property
    def size(self) -> int:
        return len(self.text) + len(self.logger) + _PER_LINE


class _Chunk(msgspec.Struct, frozen=True):
    """Log lines under a number. They are written again under it until the database has answered: idempotent."""

    no: int
    lines: tuple[Line, ...]
    drops: tuple[int, ...]


class Log:
    """Log of one attempt. It keeps the first quarter of its limit and the last three quarters."""

    def __init__(self, limit: int) -> None:
        self._head_left = limit // 4
        self._tail = limit - self._head_left
        self._first: list[Line] = []
        self._last: deque[Line] = deque()
        self._last_size = 0
        self._lost = False
        self._no = 0
        self._kept: deque[tuple[int, int]] = deque()
        self._kept_size = 0

    def add(self, line: Line) -> None:
        if line.size <= self._head_left:
            self._head_left -= line.size
            self._first.append(line)
            return
        self._head_left = 0
        self._last.append(line)
        self._last_size += line.size
        while self._last_size > self._tail and len(self._last) > 1:
            self._last_size -= self._last.popleft().size
            self._lost = True

    def chunks(self) -> list[_Chunk]:
        """Return the lines since the last call, as numbered chunks."""
        chunks = []
        if self._first:
            self._no += 1
            chunks.append(_Chunk(self._no, tuple(self._first), ()))
            self._first.clear()
        if self._last:
            self._no += 2 if self._lost else 1
            chunks.append(_Chunk(self._no, tuple(self._last), self._make_room()))
            self._last.clear()
            self._last_size, self._lost = 0, False
        return chunks

    def _make_room(self) -> tuple[int, ...]:
        """Return the numbers of earlier chunks that this one displaces."""
        self._kept.append((self._no, self._last_size))
        self._kept_size += self._last_size
        drops = []
        while self._kept_size > self._tail and len(self._kept) > 1:
            no, size = self._kept.popleft()
            self._kept_size -= size
            drops.append(no)
        return tuple(drops)


class AttemptNotes:
    """Notes of one attempt. Handlers write from any thread, hence the lock."""

    def __init__(self, claim: Claim, log_limit: int, clock: Clock, changed: Callable[[AttemptNotes], None]) -> None:
        self.run_id, self.fence, self.attempt = claim.run_id, claim.fence, claim.attempt
        self._clock = clock
        self._changed = changed
        self._log = Log(log_limit) if log_limit else None
        self._done: int | None = None
        self._summary: str | None = None
        self._progressed = False
        self._steps: dict[str, StepNote] = {}
        self._begun: dict[str, float] = {}
        self._unsent: list[_Chunk] = []
        self._taken = Notes()  # on their way
        self._lock = threading.Lock()
        self._is_closed = False

    def close(self) -> None:
        """Accept nothing more. What was written before still reaches the database."""
        self._is_closed = True

    def progress(self, done: int | None, summary: str | None) -> None:
        if self._is_closed:
            return
        with self._lock:
            self._done = self._done if done is None else done
            self._summary = self._summary if summary is None else summary
            self._progressed = True
        self._changed(self)

    def line(self, level: int, logger: str, text: str, *, age: float = 0.0) -> None:
        if self._log is None or self._is_closed:
            return
        line_text, name = storable(text, LONGEST_LINE), storable(logger, LONGEST_LOGGER)
        line = Line(self._clock.monotonic() - age, level, name, line_text)
        with self._lock:
            self._log.add(line)
        self._changed(self)

    def step(self, note: StepNote, begun: float | None) -> None:
        """Replace the pending note of that step."""
        if self._is_closed:
            return
        with self._lock:
            self._steps[note.id] = note
            if begun is not None:
                self._begun[note.id] = begun
        self._changed(self)

    def forget_step(self, id: str) -> None:
        """Drop the pending note of a step whose end is written separately."""
        with self._lock:
            self._steps.pop(id, None)
            self._taken = Notes(self._taken.progress, tuple(note for note in self._taken.steps if note.id != id))

    def take(self) -> Notes:
        """Take everything that is to be written now."""
        with self._lock:
            notes = self._taken = self._pending(Notes())
            self._progressed, self._steps = False, {}
        return notes

    def unwritten_notes(self) -> Notes:
        """Return everything not known to be written. A write in flight may arrive after the end of the run."""
        with self._lock:
            return self._pending(self._taken)

    def _pending(self, besides: Notes) -> Notes:
        now = self._clock.monotonic()
        for chunk in self._log.chunks() if self._log else ():
            self._unsent = [earlier for earlier in self._unsent if earlier.no not in chunk.drops] + [chunk]
        progress = ProgressNote(self.run_id, self.fence, self._done, self._summary)
        steps = {note.id: note for note in besides.steps} | self._steps
        return Notes(
            (progress,) if self._progressed or besides.progress else (),
            tuple(self._aged(note, now) for note in steps.values()),
            tuple(self._log_note(chunk, now) for chunk in self._unsent),
        )

    def _aged(self, note: StepNote, now: float) -> StepNote:
        begun = self._begun.get(note.id)
        return note if begun is None else msgspec.structs.replace(note, age=_micros(now - begun), taken_at=now)

    def _log_note(self, chunk: _Chunk, now: float) -> LogNote:
        lines = [(_micros(now - line.at), line.level, line.logger, line.text) for line in chunk.lines]
        return LogNote(self.run_id, self.fence, self.attempt, chunk.no, encoded(lines), chunk.drops, now)

    def written(self, notes: Notes) -> None:
        sent = {note.no for note in notes.logs}
        with self._lock:
            self._taken = Notes()
            self._unsent = [chunk for chunk in self._unsent if chunk.no not in sent]

    def give_back(self, notes: Notes) -> None:
        """Take back notes that were not written; newer ones have precedence."""
        with self._lock:
            self._taken = Notes()
            self._progressed = self._progressed or bool(notes.progress)
            self._steps = {note.id: note for note in notes.steps} | self._steps
        self._changed(self)


class NoteBuffer:
    """Notes of all attempts of a worker. `lost` is called for attempts whose lease is gone."""

    def __init__(self, store: Store, log_limit: int, lost: Callable[[str, int], None]) -> None:
        self.refused = 0
        self.loop = asyncio.get_running_loop()
        self._store = store
        self._log_limit = log_limit
        self._lost = lost
        self._dirty: set[AttemptNotes] = set()
        self._lock = threading.Lock()
        self._wake = asyncio.Event()
        self._writing = asyncio.Lock()
        self._ends: Batcher[StepNote, bool] = Batcher(self._write_steps)
        self._background: set[asyncio.Task[Any]] = set()

    def notes_of(self, claim: Claim) -> AttemptNotes:
        return AttemptNotes(claim, self._log_limit, self._store.clock, self._changed)

    async def write_step(self, note: StepNote) -> bool:
        """Write a step at once, batched with others of the same moment. Return False if the lease is gone."""
        return await self._ends.add(note)

    async def _write_steps(self, notes: Sequence[StepNote]) -> Sequence[bool]:
        gone = await self._store.notes.write(Notes(steps=tuple(notes)))
        return [(note.run_id, note.fence) not in gone for note in notes]

    def keep_running(self, writing: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `writing` in a task that outlives its caller; reports wait for it."""
        task = asyncio.create_task(writing)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(_retrieve_exception)
        return task

    def _changed(self, attempt: AttemptNotes) -> None:
        with self._lock:
            is_new = attempt not in self._dirty
            self._dirty.add(attempt)
        if is_new:
            with contextlib.suppress(RuntimeError):  # the loop may be closed, and the handler's thread still at work
                self.loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(EVERY)
            self._wake.clear()
            try:
                await self._write_dirty()
            except Exception as error:
                log.warning("cannot write notes yet: %s", error, exc_info=not isinstance(error, RotaError))
                await asyncio.sleep(_REST_AFTER_TROUBLE)

    async def flush(self) -> None:
        """Write everything pending and wait for writes in flight. What fails now is written again later."""
        if self._dirty or self._writing.locked():
            await self._write_dirty()
        if self._background:
            await asyncio.wait(self._background)

    async def _write_dirty(self) -> None:
        # `_writing` admits one writer at a time, so that notes of one attempt reach the database in order; `_lock` only
        # protects the set, because handlers' threads add to it. It is never held together with an attempt's own lock.
        async with self._writing:
            with self._lock:
                attempts, self._dirty = self._dirty, set()
            remaining = sorted(attempts, key=lambda attempt: attempt.run_id)
            try:
                while remaining:
                    remaining = remaining[await self._write_some(remaining) :]
            finally:
                for attempt in remaining:
                    self._changed(attempt)

    async def _write_some(self, attempts: Sequence[AttemptNotes]) -> int:
        """Write as many as fit well into one statement; return how many attempts were covered."""
        taken: dict[AttemptNotes, Notes] = {}
        size = 0
        for attempt in attempts:
            notes = taken[attempt] = attempt.take()
            size += sum(len(note.lines) for note in notes.logs)
            if size > _BYTES:
                break
        try:
            await self._write(taken)
        except BaseException:
            for attempt, notes in taken.items():
                attempt.give_back(notes)
            raise
        return len(taken)

    async def _write(self, taken: dict[AttemptNotes, Notes]) -> None:
        try:
            gone = await self._store.notes.write(_together(taken.values()))
        except Unavailable:
            raise
        except Exception as error:  # one bad note fails the whole batch: write each on its own to find it
            gone = set()
            for attempt, notes in taken.items() if len(taken) > 1 else ():
                await self._write({attempt: notes})
            if len(taken) == 1:
                log.warning("dropping notes of run %s, which cannot be stored: %s", next(iter(taken)).run_id, error)
        for attempt, notes in taken.items():
            attempt.written(notes)
            if (attempt.run_id, attempt.fence) in gone:
                self.refused += 1
                self._lost(attempt.run_id, attempt.fence)


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of a task that perhaps nobody awaits, or asyncio logs a complaint."""
    if not task.cancelled():
        task.exception()


def _together(notes: Iterable[Notes]) -> Notes:
    batches = list(notes)
    return Notes(
        tuple(note for batch in batches for note in batch.progress),
        tuple(note for batch in batches for note in batch.steps),
        tuple(note for batch in batches for note in batch.logs),
    )


def _micros(seconds: float) -> int:
    return max(0, int(seconds * 1_000_000))
