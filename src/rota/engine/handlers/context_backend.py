"""Backend of a handler's context inside the worker: it buffers notes and writes steps and shields under the fence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from rota.core.jobs.pipelines import steps_within, within
from rota.core.progress.control_flow import Snooze
from rota.core.progress.notes import Notes, StepNote
from rota.core.progress.steps import MOST_STEPS, StepDefinition, StepState, definition_of, number_of
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.outcome import Report
from rota.core.runs.run import RunError
from rota.engine.handlers.context import Opened, stored
from rota.engine.handlers.describe_error import error_of
from rota.engine.handlers.note_buffer import NoteBuffer
from rota.engine.handlers.shield import Guard, Shield
from rota.engine.handlers.transaction import SyncTransaction, Transaction, sync_transaction, transaction
from rota.errors import Invalid, LeaseLost, StepTwice, Unavailable
from rota.registry.hooks.lifespan import States
from rota.store import Store
from rota.values.json import Limits

if TYPE_CHECKING:
    from rota.engine.handlers.attempt import Attempt

T = TypeVar("T")

_REST_AFTER_TROUBLE = 0.5


class BackendHost(Guard, Protocol):
    """The part of a worker that a backend uses."""

    store: Store
    note_buffer: NoteBuffer
    limits: Limits
    states: States

    async def in_thread(self, attempt: Attempt, call: Callable[[], Any]) -> Any: ...

    def overdue(self, attempt: Attempt, step: StepDefinition) -> None:
        """Stop a step that took too long and that only the worker can stop."""

    def success(self, attempt: Attempt, result: str | None) -> Report:
        """Return the report of an attempt that has just succeeded; `result` is JSON."""


class _Open(msgspec.Struct):
    """A step that is open; `over` is set when it is closed or left."""

    definition: StepDefinition
    no: int
    begun: float
    over: asyncio.Event
    timer: asyncio.TimerHandle | None = None
    done: int | None = None
    summary: str | None = None


class WorkerBackend:
    """Backend on the worker's event loop.

    Only `progress`, `skip_step`, `say` and `wait` may be called in other threads.
    """

    stops_threads = False

    def __init__(self, attempt: Attempt, host: BackendHost) -> None:
        self._attempt = attempt
        self._claim = attempt.claim
        self._host = host
        self._notes = host.note_buffer.notes_of(attempt.claim)
        self._shield = Shield(attempt, host.store, host, self._until_available)
        self._results: dict[str, str | None] | None = None
        self._seen: set[str] = set()
        self._given_up: set[str] = set()
        self._opened = 0
        self._open: dict[str, _Open] = {}
        self._transacting = False

    @property
    def states(self) -> States:
        return self._host.states

    def progress(self, done: int | None, summary: str | None, step: str | None) -> None:
        if step is None:
            self._notes.progress(done, summary)
            return
        opened = self._open.get(step)
        if opened is None:
            raise Invalid(f"step {step!r} is not open", hint="progress of a step is told while it runs")
        opened.done = opened.done if done is None else done
        opened.summary = opened.summary if summary is None else summary
        self._notes.step(self._note(opened, StepState.RUNNING), opened.begun)

    def say(self, level: int, logger: str, text: str, *, age: float = 0.0) -> None:
        self._notes.line(level, logger, text, age=age)

    def wait(self, act: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(act, self._host.note_buffer.loop).result()

    async def parents(self) -> Sequence[RelatedRun]:
        return await self._until_available(lambda: self._host.store.dependencies.parents(self._claim.run_id))

    async def in_thread(self, call: Callable[[], Any]) -> Any:
        return await self._host.in_thread(self._attempt, call)

    def skip_step(self, id: str, reason: str | None) -> None:
        opened = _Open(self._first_time(id), self._next_no(), 0.0, asyncio.Event(), summary=reason)
        self._notes.step(self._note(opened, StepState.SKIPPED), None)

    async def open_step(self, id: str, *, interruptible: bool) -> Opened:
        if self._transacting:
            raise Invalid("a step cannot be opened inside a transaction", hint="open it before, or after")
        definition = self._first_time(id)
        try:
            return await self._open_step(definition, interruptible)
        except BaseException:  # the step was not opened, so it may be opened later
            self._seen.discard(id)
            raise

    async def _open_step(self, definition: StepDefinition, interruptible: bool) -> Opened:
        id = definition.id
        if id in self._open:  # the handler's previous call (a local retry) left it open, and it is still being closed
            await self._open[id].over.wait()
        results = await self._results_before()
        if id in results:
            return Opened(True, _decoded(results[id]))
        opened = _Open(definition, self._next_no(), self._now(), asyncio.Event())
        if not definition.cancelable:
            await self._raise_shield(opened)
        self._open[id] = opened
        if definition.timeout is not None and not interruptible:
            seconds = definition.timeout.total_seconds()
            opened.timer = self._host.note_buffer.loop.call_later(
                seconds, self._host.overdue, self._attempt, definition
            )
        self._notes.step(self._note(opened, StepState.RUNNING), opened.begun)
        if id in self._given_up:
            self._given_up.discard(id)
            self._leave(id, None)
        return Opened(False, timeout=definition.timeout, shielded=not definition.cancelable)

    async def _raise_shield(self, opened: _Open) -> None:
        """Raise the shield of a step. If the handler is interrupted meanwhile, lower it as soon as it is up."""
        # A task of its own: a cancellation must not leave the database unaware whether the shield is up.
        rising = self._host.note_buffer.keep_running(self._shield.up())
        try:
            await asyncio.shield(rising)
        except asyncio.CancelledError:
            self._host.note_buffer.keep_running(self._lower_shield(rising, opened))
            raise

    async def _lower_shield(self, rising: asyncio.Task[None], opened: _Open) -> None:
        await rising
        await self._shield.down(self._note(opened, StepState.RUNNING))

    def begin_again(self) -> None:
        """Allow all steps to be opened again, for another call of the handler in the same attempt."""
        self._seen.clear()

    def _first_time(self, id: str) -> StepDefinition:
        definition = definition_of(self._attempt.handler.definition.steps, id)
        if id in self._seen:
            raise StepTwice(id)
        if len(self._seen) >= MOST_STEPS:
            raise Invalid(f"a run has at most {MOST_STEPS} steps")
        self._seen.add(id)
        return definition

    def _next_no(self) -> int:
        self._opened += 1
        return number_of(self._claim.fence, self._opened)

    async def _results_before(self) -> dict[str, str | None]:
        """Return the results of steps done by earlier attempts, by the run that this one retries, or by this one."""
        if self._results is None:
            recorded = []
            if self._claim.fence > 1 or self._claim.origin_id is not None:
                recorded = await self._until_available(
                    lambda: self._host.store.notes.recorded_steps(self._claim.run_id)
                )
            done = {step.id: step.result for step in recorded if step.state is StepState.SUCCEEDED}
            self._results = {**steps_within(self._claim.part, done), **(self._results or {})}
        return self._results

    async def close_step(self, id: str, result: object) -> Any:
        try:
            text = stored(id, result, self._host.limits)
        except Exception as error:
            await self.leave_step(id, error)
            raise
        await self.keep_result(id, text)
        return msgspec.json.decode(text)

    async def keep_result(self, id: str, text: str) -> None:
        """Store the result of a step, given as JSON."""
        opened = self._open[id]
        self._notes.forget_step(within(self._claim.part, id))
        try:
            await self._record(opened, self._note(opened, StepState.SUCCEEDED, result=text))
            (await self._results_before())[id] = text
        finally:
            self._end(id)

    async def leave_step(self, id: str, error: BaseException | None) -> None:
        opens_again = error is None or isinstance(error, Snooze)
        await self.keep_error(id, None if error is None or opens_again else error_of(error))

    async def keep_error(self, id: str, error: RunError | None) -> None:
        """Leave a step with an error. It may be opened again, in this attempt or the next."""
        if leaving := self._leave(id, error):
            await asyncio.shield(leaving)

    def give_up_step(self, id: str) -> None:
        if id in self._open:
            self._leave(id, None)
        elif id in self._seen:  # race: a child process gave up while its request to open the step was under way
            self._given_up.add(id)

    def _leave(self, id: str, error: RunError | None) -> asyncio.Task[None] | None:
        """Leave a step; return the task that lowers its shield, if it has one."""
        opened = self._open[id]
        self._seen.discard(id)
        text = None if error is None else msgspec.json.encode(error).decode()
        note = self._note(opened, StepState.RUNNING if error is None else StepState.FAILED, error=text)
        if not opened.definition.cancelable:
            return self._host.note_buffer.keep_running(self._lower(id, opened, note))
        self._notes.step(note, opened.begun)
        self._end(id)
        return None

    async def _lower(self, id: str, opened: _Open, note: StepNote) -> None:
        try:
            await self._record(opened, note)
        finally:
            self._end(id)

    def _end(self, id: str) -> None:
        opened = self._open.pop(id)
        opened.over.set()
        if opened.timer is not None:
            opened.timer.cancel()

    async def _record(self, opened: _Open, note: StepNote) -> None:
        """Write the end of a step at once, and to completion even if the handler is interrupted: its work is done."""
        if opened.definition.cancelable:
            writing = self._until_available(lambda: self._host.note_buffer.write_step(note))
        else:
            writing = self._shield.down(note)
        if not await asyncio.shield(self._host.note_buffer.keep_running(writing)):
            raise LeaseLost(self._claim.run_id, self._claim.fence)

    def _note(self, opened: _Open, state: StepState, **ending: str | None) -> StepNote:
        claim = self._claim
        age = None if state is StepState.SKIPPED else max(0, int((self._now() - opened.begun) * 1_000_000))
        return StepNote(
            claim.run_id,
            claim.fence,
            claim.attempt,
            within(claim.part, opened.definition.id),
            opened.no,
            state,
            age,
            opened.done,
            opened.summary,
            ending.get("result"),
            ending.get("error"),
        )

    def _now(self) -> float:
        return self._host.store.clock.monotonic()

    async def _until_available(self, act: Callable[[], Awaitable[T]]) -> T:
        """Repeat `act` while the database is unavailable, for as long as the attempt goes on."""
        while True:
            try:
                return await act()
            except Unavailable:
                if self._attempt.lost:
                    raise LeaseLost(self._claim.run_id, self._claim.fence) from None
                if self._attempt.reported:
                    raise
                await asyncio.sleep(_REST_AFTER_TROUBLE)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        if self._transacting:
            raise Invalid("this run has an open transaction already")
        self._transacting = True
        try:
            await self.flush()
            async with transaction(self._host.store, self._claim, self._host.limits, self._end_of_run) as tx:
                yield tx
            if tx.is_finished:
                self.finish()
        finally:
            self._transacting = False

    async def _end_of_run(self, result: str | None) -> tuple[Report, Notes]:
        """Return what is committed with the handler's own work: its success, and its notes."""
        return self._host.success(self._attempt, result), self.unwritten_notes()

    def unwritten_notes(self) -> Notes:
        """Return the notes that are not known to be written.

        They stay pending until the end of the run is committed.
        """
        return self._notes.unwritten_notes()

    def finish(self) -> None:
        """Mark the run as ended by its handler's own transaction, together with its notes."""
        self._attempt.finish()
        self._notes.written(self._notes.take())
        self.close()

    def sync_transaction(self) -> AbstractContextManager[SyncTransaction]:
        return sync_transaction(self.transaction(), self.wait)

    async def flush(self) -> None:
        await self._until_available(self._host.note_buffer.flush)

    def close(self) -> None:
        """Ignore further notes: the attempt is over, though its threads may go on."""
        self._notes.close()
        for opened in self._open.values():
            if opened.timer is not None:
                opened.timer.cancel()


def _decoded(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
