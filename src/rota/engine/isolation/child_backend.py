"""Backend of a handler's context inside a child process: it batches notes and sends requests to the worker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import msgspec

from rota.core.progress.control_flow import Cancelled, Snooze
from rota.core.progress.notes import LONGEST_LINE, LONGEST_LOGGER, Notes, RawLine, storable
from rota.core.runs.claim import Claim
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.outcome import Report
from rota.core.runs.run import Measures, RunError
from rota.core.states import Outcome
from rota.engine.handlers.context import Opened, Standing, stored
from rota.engine.handlers.describe_error import error_of
from rota.engine.handlers.threads import HandlerThreads
from rota.engine.handlers.transaction import SyncTransaction, Transaction, sync_transaction, transaction
from rota.engine.isolation.child_main import Link
from rota.errors import Invalid, LeaseLost, Unavailable
from rota.registry.hooks.lifespan import NO_STATES, States
from rota.store import Store, open_database
from rota.store.databases.database import drive
from rota.values.json import Limits

T = TypeVar("T")

_EVERY = 0.2
_WARNING = 30
_MOST_LINES = 10_000
_MOST_THREADS = 100


class ChildNotes(msgspec.Struct, omit_defaults=True):
    """Notes since the last message; only the latest progress of the run and of each step. Ages are in microseconds."""

    progress: tuple[int | None, str | None] | None = None
    steps: dict[str, tuple[int | None, str | None]] = {}
    lines: list[RawLine] = []


class ChildRequest(msgspec.Struct):
    """A request whose answer the handler awaits. `text` is JSON: a result, or an error."""

    no: int
    verb: str
    id: str = ""
    text: str | None = None
    interruptible: bool = False


class ChildAnswer(msgspec.Struct):
    """The worker's answer to a request, or the reason for a refusal."""

    opened: Opened | None = None
    notes: Notes | None = None
    parents: list[RelatedRun] = []
    refusal: str | None = None
    kind: str = ""


class ChildBackend:
    """Backend that talks to the worker through a `Link`. Notes may come from any thread."""

    stops_threads = True

    def __init__(
        self,
        link: Link,
        claim: Claim,
        standing: Standing,
        limits: Limits,
        database_url: str | None,
        states: States = NO_STATES,
    ) -> None:
        self.states = states
        self._link = link
        self._claim = claim
        self._standing = standing
        self._limits = limits
        self._database_url = database_url
        self._began = time.monotonic()
        self._notes = ChildNotes()
        self._lines: list[tuple[float, int, str, str]] = []
        self._lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._wake = threading.Event()
        self._sent_at = 0.0
        self._closed = False
        self._thread: threading.Thread | None = None
        self._shielded: set[str] = set()
        self._threads: HandlerThreads | None = None
        self._transacting = False

    def progress(self, done: int | None, summary: str | None, step: str | None) -> None:
        with self._lock:
            old = (self._notes.progress if step is None else self._notes.steps.get(step)) or (None, None)
            new = (old[0] if done is None else done, old[1] if summary is None else summary)
            if step is None:
                self._notes.progress = new
            else:
                self._notes.steps[step] = new
        self._send_soon()

    def say(self, _attempt: object, level: int, logger: str, text: str) -> None:
        line = storable(text, LONGEST_LINE)
        with self._lock:
            if len(self._lines) < _MOST_LINES:
                self._lines.append((time.monotonic(), level, storable(logger, LONGEST_LOGGER), line))
        self._send_soon(at_once=level >= _WARNING)

    def _send_soon(self, *, at_once: bool = False) -> None:
        """Send notes now or within 0.2 s.

        The first note after a silence and warnings go at once: they may be the last.
        """
        if at_once or time.monotonic() - self._sent_at > _EVERY:
            self._send()
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_loop, name="rota-notes", daemon=True)
            self._thread.start()
        self._wake.set()

    def _send_loop(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            self._send()
            time.sleep(_EVERY)

    def _send(self) -> None:
        """Send all pending notes. The outer lock keeps messages in order; handlers only ever wait for the inner one."""
        with self._send_lock:
            self._sent_at = time.monotonic()
            with self._lock:
                notes, self._notes = self._notes, ChildNotes()
                lines, self._lines = self._lines, []
            now = time.monotonic()
            notes.lines = [(int((now - at) * 1_000_000), level, name, text) for at, level, name, text in lines]
            if notes != ChildNotes():
                self._link.send("said", msgspec.json.encode(notes))

    def close(self) -> None:
        """Send the last notes, before the call's answer is sent."""
        self._closed = True
        self._send()
        self._wake.set()

    def skip_step(self, id: str, reason: str | None) -> None:
        drive(self._ask("skip_step", id, msgspec.json.encode(reason).decode()))

    async def open_step(self, id: str, *, interruptible: bool) -> Opened:
        if self._transacting:
            raise Invalid("a step cannot be opened inside a transaction", hint="open it before, or after")
        try:
            answer = await self._ask("open_step", id, interruptible=interruptible)
        except asyncio.CancelledError:
            self.give_up_step(id)
            raise
        assert answer.opened is not None
        if answer.opened.shielded:
            self._shielded.add(id)
            self._standing.shields += 1
        return answer.opened

    async def close_step(self, id: str, result: object) -> Any:
        try:
            text = stored(id, result, self._limits)
        except Exception as error:
            await self.leave_step(id, error)
            raise
        await self._ask_and_lower(id, "close_step", text)
        return msgspec.json.decode(text)

    async def leave_step(self, id: str, error: BaseException | None) -> None:
        again = error is None or isinstance(error, Snooze)
        text = None if again or error is None else msgspec.json.encode(error_of(error)).decode()
        await self._ask_and_lower(id, "leave_step", text)

    def give_up_step(self, id: str) -> None:
        """Leave a step without waiting for the answer."""
        self._send()
        self._link.send("ask", msgspec.json.encode(ChildRequest(0, "give_up_step", id)))
        self._lower(id)

    def _lower(self, id: str) -> None:
        if id in self._shielded:
            self._shielded.discard(id)
            self._standing.shields -= 1

    async def _ask_and_lower(self, id: str, verb: str, text: str | None) -> None:
        try:
            await self._ask(verb, id, text)
        finally:
            self._lower(id)

    async def _ask(
        self, verb: str, id: str = "", text: str | None = None, *, interruptible: bool = False
    ) -> ChildAnswer:
        self._send()  # notes written before the request must arrive before it
        request = ChildRequest(self._link.next_no(), verb, id, text, interruptible)
        body = msgspec.json.encode(request)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            reply = self._link.ask(request.no, body)
        else:
            reply = await asyncio.to_thread(self._link.ask, request.no, body)
        answer = msgspec.json.decode(reply, type=ChildAnswer)
        if answer.refusal is not None:
            raise self._refused(answer)
        return answer

    def _refused(self, answer: ChildAnswer) -> BaseException:
        message = answer.refusal or ""
        match answer.kind:
            case "LeaseLost":
                return LeaseLost(self._claim.run_id, self._claim.fence)
            case "Cancelled":
                return Cancelled(message)
            case "Invalid":
                return Invalid(message)
            case _:
                return Unavailable(message)

    async def parents(self) -> Sequence[RelatedRun]:
        return (await self._ask("parents")).parents

    def wait(self, act: Coroutine[Any, Any, T]) -> T:
        result: T = drive(act)
        return result

    async def in_thread(self, call: Callable[[], Any]) -> Any:
        if self._threads is None:
            self._threads = HandlerThreads(_MOST_THREADS)
        return await asyncio.wrap_future(self._threads.submit(call))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        if self._database_url is None:
            raise Unavailable("a child process cannot reach this database")
        if self._transacting:
            raise Invalid("this run has an open transaction already")
        self._transacting = True
        store = Store(open_database(self._database_url))
        try:
            await self._ask("flush")
            async with transaction(store, self._claim, self._limits, self._end_of_run) as tx:
                yield tx
            if tx.is_finished:
                await self._ask("finished")
        finally:
            self._transacting = False
            await store.close()

    async def _end_of_run(self, result: str | None) -> tuple[Report, Notes]:
        claim, busy = self._claim, int((time.monotonic() - self._began) * 1_000_000)
        counters = self._standing.counters
        measures = msgspec.json.encode(Measures(counters=counters)).decode() if counters else None
        report = Report(
            claim.run_id,
            claim.fence,
            Outcome.SUCCEEDED,
            busy,
            result,
            measures=measures,
            limited=claim.limited,
            part=claim.part,
            job=claim.pipeline or claim.job,
            queue=claim.queue,
        )
        return report, (await self._ask("unwritten_notes")).notes or Notes()

    @contextmanager
    def sync_transaction(self) -> Iterator[SyncTransaction]:
        """Open a transaction on an event loop that lives as long as it does."""
        with asyncio.Runner() as runner, sync_transaction(self.transaction(), runner.run) as tx:
            yield tx


def refusal_of(error: BaseException) -> ChildAnswer:
    """Encode an exception, in the parent, so that the child can raise it again."""
    kinds = (LeaseLost, Cancelled, Invalid, Unavailable)
    kind = next((kind.__name__ for kind in kinds if isinstance(error, kind)), "")
    return ChildAnswer(refusal=str(error), kind=kind)


def described(text: str | None) -> RunError | None:
    return None if text is None else msgspec.json.decode(text, type=RunError)
