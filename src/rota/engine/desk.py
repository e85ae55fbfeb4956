"""A handler's words as its worker takes them: notes on its page, steps and shields under its fence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from rota.core import jsonvalue
from rota.core.jsonvalue import Limits
from rota.core.model import RunError
from rota.core.notes import Notes, StepNote
from rota.core.signals import Cancelled, Fail, Snooze
from rota.core.steps import MOST_STEPS, StepDefinition, StepState, definition_of
from rota.durations import in_micros
from rota.engine.context import Opened
from rota.engine.describing import error_of
from rota.engine.notebook import Notebook
from rota.engine.transacting import SyncTransaction, Transaction, sync_transaction, transaction
from rota.errors import BadPayload, Invalid, LeaseLost, StepTwice, Unavailable, UnknownStep
from rota.store import Store

if TYPE_CHECKING:
    from rota.engine.attempts import Attempt

T = TypeVar("T")

_REST_AFTER_TROUBLE = 0.5


class Floor(Protocol):
    """What a desk needs of the worker that it stands in."""

    store: Store
    notebook: Notebook
    limits: Limits

    async def in_thread(self, attempt: Attempt, call: Callable[[], Any]) -> Any: ...

    def overdue(self, attempt: Attempt, step: StepDefinition) -> None:
        """A step took too long, and nobody but the worker can stop it."""

    def unshielded(self, attempt: Attempt) -> None:
        """A cancel that had to wait need not wait any longer."""

    def busy(self, attempt: Attempt) -> int:
        """Microseconds since its handler began."""


class _Open(msgspec.Struct):
    definition: StepDefinition
    no: int
    begun: float
    timer: asyncio.TimerHandle | None = None
    done: int | None = None
    summary: str | None = None


class WorkerDesk:
    """Lives on its worker's event loop; only `progress`, `say` and `wait` are for other threads."""

    def __init__(self, attempt: Attempt, floor: Floor) -> None:
        self._attempt = attempt
        self._claim = attempt.claim
        self._floor = floor
        self._page = floor.notebook.page(attempt.claim)
        self._before: dict[str, tuple[int, StepState, str | None]] | None = None
        self._seen: set[str] = set()
        self._open: dict[str, _Open] = {}
        self._last_no = 0
        self._transacting = False

    def progress(self, done: int | None, summary: str | None, step: str | None) -> None:
        if step is None:
            self._page.progress(done, summary)
            return
        if step not in self._open:
            raise UnknownStep(step, self._open)
        opened = self._open[step]
        opened.done = opened.done if done is None else done
        opened.summary = opened.summary if summary is None else summary
        self._page.step(self._note(opened, StepState.RUNNING), opened.begun)

    def say(self, level: int, logger: str, text: str, *, age: float = 0.0) -> None:
        self._page.line(level, logger, text, age=age)

    def wait(self, act: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(act, self._floor.notebook.loop).result()

    async def in_thread(self, call: Callable[[], Any]) -> Any:
        return await self._floor.in_thread(self._attempt, call)

    def skip_step(self, id: str, reason: str | None) -> None:
        definition = self._first_time(id)
        opened = _Open(definition, self._next_no(), 0.0, summary=reason)
        self._page.step(self._note(opened, StepState.SKIPPED), None)

    async def open_step(self, id: str, *, interruptible: bool) -> Opened:
        if self._transacting:
            raise Invalid("a step cannot be opened inside a transaction", hint="open it before, or after")
        definition = self._first_time(id)
        no, state, result = (await self._steps_before()).get(id, (None, None, None))
        if state is StepState.SUCCEEDED:
            return Opened(True, None if result is None else msgspec.json.decode(result))
        if not definition.cancelable:
            await self._shield()
        opened = _Open(definition, self._next_no() if no is None else no, self._now())
        self._open[id] = opened
        if definition.timeout is not None and not interruptible:
            seconds = definition.timeout.total_seconds()
            opened.timer = asyncio.get_running_loop().call_later(
                seconds, self._floor.overdue, self._attempt, definition
            )
        self._page.step(self._note(opened, StepState.RUNNING), opened.begun)
        return Opened(False, timeout=definition.timeout, shielded=not definition.cancelable)

    def begin_again(self) -> None:
        """The handler is called once more in the same attempt: its steps may be opened once more."""
        self._seen.clear()
        for id in list(self._open):
            self._ended(id)

    def _first_time(self, id: str) -> StepDefinition:
        definition = definition_of(self._attempt.handler.definition.steps, id)
        if id in self._seen:
            raise StepTwice(id)
        if len(self._seen) >= MOST_STEPS:
            raise Invalid(f"a run has at most {MOST_STEPS} steps")
        self._seen.add(id)
        return definition

    async def _steps_before(self) -> dict[str, tuple[int, StepState, str | None]]:
        """What earlier attempts have recorded, or the run that this one is a retry of."""
        if self._before is None:
            found = []
            if self._claim.fence > 1 or self._claim.origin_id is not None:
                found = await self._surely(lambda: self._floor.store.notes.recorded_steps(self._claim.run_id))
            self._before = {step.id: (step.no, step.state, step.result) for step in found}
            self._last_no = max([self._last_no, *(step.no for step in found)])
        return self._before

    def _next_no(self) -> int:
        self._last_no += 1
        return self._last_no

    async def _shield(self) -> None:
        claim = self._claim
        shielded = await self._surely(lambda: self._floor.store.notes.shield(claim.run_id, claim.fence))
        if shielded is None:
            raise LeaseLost(claim.run_id, claim.fence)
        if not shielded:
            self._attempt.cancelled = True
            raise Cancelled(f"run {claim.run_id} was cancelled")
        self._attempt.shields += 1

    async def close_step(self, id: str, result: object) -> Any:
        try:
            text = jsonvalue.encode(result, self._floor.limits)
        except BadPayload as error:
            failure = Fail(f"the result of step {id!r} cannot be stored: {error.problem}")
            await self.leave_step(id, failure)
            raise failure from error
        await self.keep_result(id, text)
        return msgspec.json.decode(text)

    async def keep_result(self, id: str, text: str) -> None:
        """Of a step that is done, as JSON."""
        opened = self._ended(id)
        self._page.forget_step(id)
        await self._record(opened, self._note(opened, StepState.SUCCEEDED, result=text))
        (await self._steps_before())[id] = (opened.no, StepState.SUCCEEDED, text)

    async def leave_step(self, id: str, error: BaseException | None) -> None:
        begun_again = error is None or isinstance(error, Snooze)
        await self.keep_error(id, None if error is None or begun_again else error_of(error))

    async def keep_error(self, id: str, error: RunError | None) -> None:
        opened = self._ended(id)
        if error is None:
            note = self._note(opened, StepState.RUNNING)
        else:
            note = self._note(opened, StepState.FAILED, error=msgspec.json.encode(error).decode())
        if opened.definition.cancelable:
            self._page.step(note, opened.begun)
        else:
            await self._record(opened, note)

    def _ended(self, id: str) -> _Open:
        opened = self._open.pop(id)
        if opened.timer is not None:
            opened.timer.cancel()
        return opened

    async def _record(self, opened: _Open, note: StepNote) -> None:
        """At once. The last step that must not be cancelled also lets a cancel through again."""
        claim, floor = self._claim, self._floor
        if opened.definition.cancelable or self._attempt.shields > 1:
            written = await self._surely(lambda: floor.notebook.write_step(note))
        else:
            grace = in_micros(self._attempt.handler.definition.cancel.grace)
            written = not await self._surely(lambda: floor.store.notes.unshield(Notes(steps=(note,)), grace))
        if not opened.definition.cancelable:
            self._attempt.shields -= 1
            floor.unshielded(self._attempt)
        if not written:
            raise LeaseLost(claim.run_id, claim.fence)

    def _note(self, opened: _Open, state: StepState, **ending: str | None) -> StepNote:
        claim = self._claim
        age = None if state is StepState.SKIPPED else max(0, int((self._now() - opened.begun) * 1_000_000))
        return StepNote(
            claim.run_id,
            claim.fence,
            claim.attempt,
            opened.definition.id,
            opened.no,
            state,
            age,
            opened.done,
            opened.summary,
            ending.get("result"),
            ending.get("error"),
        )

    def _now(self) -> float:
        return self._floor.store.clock.monotonic()

    async def _surely(self, act: Callable[[], Awaitable[T]]) -> T:
        """Again while the database is away, for as long as the attempt goes on."""
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
            raise Invalid("a transaction is open already in this run")
        floor, attempt = self._floor, self._attempt
        await self.flush()
        self._transacting = True
        try:
            opening = transaction(floor.store, self._claim, floor.limits, lambda: floor.busy(attempt), attempt.finish)
            async with opening as tx:
                yield tx
        finally:
            self._transacting = False

    def sync_transaction(self) -> AbstractContextManager[SyncTransaction]:
        return sync_transaction(self.transaction(), self.wait)

    async def flush(self) -> None:
        await self._surely(self._floor.notebook.flush)

    def close(self) -> None:
        for opened in self._open.values():
            if opened.timer is not None:
                opened.timer.cancel()
