"""Warm pool of child processes in which `isolation="process"` handlers run, and can really be killed."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, cast

import msgspec

from rota.engine.isolation.protocol import (
    Answer,
    Began,
    Call,
    Cancel,
    Frames,
    Note,
    ProcessCall,
    Reply,
    Setup,
    Shutdown,
    Upward,
    data_size,
    frame,
    memory_peak_mb,
)
from rota.engine.isolation.spawn import Exit, encoded_death, preparations, reap, spawn
from rota.engine.observability import logs
from rota.errors import Unavailable

__all__ = ["ProcessCall", "ProcessOutcome", "ProcessPool"]

OnMessage = Callable[[str, str, bytes], None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """Outcome of a call.

    `value` is JSON: a result; or type, message, traceback and signal; or exit code and signal number.
    """

    status: Literal["returned", "raised", "died"]
    value: bytes
    cpu_time_ms: int | None = None
    memory_peak_mb: int | None = None


class _Child(asyncio.Protocol):
    """One child process, the parent's end of its socket, and its current call."""

    def __init__(self, popen: subprocess.Popen[bytes], executor: ThreadPoolExecutor) -> None:
        self.pid = popen.pid
        self.calls = 0
        self.began: Began | None = None
        self.gone: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.rest: asyncio.TimerHandle | None = None
        self._popen = popen
        self._executor = executor
        self._frames = Frames(cast("msgspec.msgpack.Decoder[Upward]", msgspec.msgpack.Decoder(Upward)))
        self._answer: asyncio.Future[ProcessOutcome] | None = None
        self._on_note: Callable[[str, bytes], None] | None = None
        self._ended = False
        self._lost = False
        self._killed = False
        self._call: ProcessCall | None = None
        self._peak: int | None = None

    @property
    def usable(self) -> bool:
        return not self._ended and not self._transport.is_closing()

    @property
    def busy(self) -> bool:
        return self._answer is not None and not self._answer.done()

    def call(self, call: ProcessCall, on_note: Callable[[str, bytes], None]) -> asyncio.Future[ProcessOutcome]:
        self.calls += 1
        self.began = None
        self._call = call
        self._on_note = on_note
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(frame(Call(self.calls, call)))
        return self._answer

    def cancel(self) -> None:
        if self.usable:
            self._transport.write(frame(Cancel(self.calls)))

    def tell_of_shutdown(self) -> None:
        if self.usable:
            self._transport.write(frame(Shutdown(self.calls)))

    def reply(self, no: int, body: bytes) -> None:
        if self.usable:
            self._transport.write(frame(Reply(self.calls, no, body)))

    def kill(self) -> None:
        if self._lost:
            return
        self._killed = True
        if self.began is not None and self.began.memory_fresh:
            self._peak = memory_peak_mb(self.pid)
        self._kill_group()
        self._transport.abort()  # a process that left the group may keep the other end open for ever

    def end(self) -> None:
        """Close the stream: the child then ends itself and all that it started."""
        if self.usable:
            self._ended = True
            self._transport.write_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        setup = Setup(list(sys.path), list(sys.argv), os.environ.get("PYTHONPATH"), logs.set_up, tuple(preparations))
        self._transport.write(frame(setup))

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._receive(message)
        except msgspec.DecodeError:
            logger.exception("killing child process %d, which sent an unreadable message", self.pid)
            self.kill()

    def _receive(self, message: Upward) -> None:
        if message.serial != self.calls or self._answer is None or self._answer.done():
            return  # late message from a thread that an earlier call left behind
        match message:
            case Began():
                self.began = message
                self._note("began", b"")
            case Note():
                self._note(message.kind, message.body)
            case Answer():
                self._answer.set_result(
                    ProcessOutcome(message.status, message.value, message.cpu_time_ms, message.memory_peak_mb)
                )

    def _note(self, kind: str, body: bytes) -> None:
        assert self._on_note is not None
        try:
            self._on_note(kind, body)
        except Exception:
            logger.exception("could not handle a message of kind %r from child process %d", kind, self.pid)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self._kill_group()  # before reaping: until then the kernel cannot give its pid to another process group
        reaping = asyncio.get_running_loop().run_in_executor(self._executor, reap, self._popen)
        reaping.add_done_callback(self._reaped)

    def _reaped(self, reaping: asyncio.Future[Exit]) -> None:
        ended = reaping.result()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(self._died(ended))
        self.gone.set_result(ended)

    def _died(self, ended: Exit) -> ProcessOutcome:
        cpu = None
        if self.began is not None and ended.cpu_ms is not None:
            cpu = max(0, ended.cpu_ms - self.began.cpu_ms)
        return ProcessOutcome("died", encoded_death(ended, self._killed, self._call, cpu), cpu, self._peak)

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):  # macOS refuses a group that holds only zombies
            os.killpg(self.pid, signal.SIGKILL)


@dataclass(slots=True)
class _Run:
    """One call; remembers a cancel or kill that comes before a child has taken it."""

    child: _Child | None = None
    cancelled: bool = False
    killed: bool = False


class ProcessPool:
    """Pool of at most `size` concurrent calls. Children are started on demand and kept for later calls.

    `on_message(key, kind, body)` gets what a handler sends up, and the kind `began` when the handler is about to run.
    """

    def __init__(
        self,
        size: int,
        *,
        max_calls_per_child: int = 1000,
        idle_limit: timedelta = timedelta(minutes=5),
        on_message: OnMessage | None = None,
        invoke: str = "rota.engine.isolation.isolated_call:invoke",
    ) -> None:
        self._size = size
        self._slots = asyncio.Semaphore(size)
        self._max_calls = max_calls_per_child
        self._idle_limit = idle_limit
        self._on_message = on_message
        self._invoke = invoke
        self._executor = ThreadPoolExecutor(min(size, 4), thread_name_prefix="rota-processes")
        self._runs: dict[str, _Run] = {}
        self._children: set[_Child] = set()
        self._idle: list[_Child] = []
        self._starting: set[asyncio.Task[_Child]] = set()
        self._closed = False

    def grow(self, size: int) -> None:
        for _ in range(self._size, size):
            self._slots.release()
        self._size = max(self._size, size)

    async def run(self, key: str, call: ProcessCall) -> ProcessOutcome:
        if key in self._runs:
            raise ValueError(f"{key!r} is running in this pool already")
        run = self._runs[key] = _Run()
        try:
            async with self._slots:
                return await self._run(key, run, call)
        finally:
            del self._runs[key]

    def request_cancel(self, key: str) -> None:
        """Ask a handler to stop. An unknown key, or a call that has ended, is no error."""
        if run := self._runs.get(key):
            run.cancelled = True
            if run.child is not None:
                run.child.cancel()

    def tell_of_shutdown(self, key: str) -> None:
        run = self._runs.get(key)
        if run is not None and run.child is not None:
            run.child.tell_of_shutdown()

    def reply(self, key: str, no: int, body: bytes) -> None:
        """Send the answer to a handler's request; ignored once the call has ended."""
        run = self._runs.get(key)
        if run is not None and run.child is not None:
            run.child.reply(no, body)

    def kill(self, key: str) -> None:
        """Kill the child and all that its handler started; `run()` then returns `died`, or never begins the call."""
        if run := self._runs.get(key):
            run.killed = True
            if run.child is not None and run.child.busy:
                run.child.kill()

    async def close(self, grace: timedelta) -> None:
        """End every child, whatever it is doing, and wait until all are reaped."""
        self._closed = True
        await asyncio.gather(*self._starting, return_exceptions=True)
        for child in self._children:
            child.end()
        await self._all_gone(grace)
        for child in self._children:
            child.kill()
        await self._all_gone(None)
        self._executor.shutdown(wait=False)

    async def _all_gone(self, limit: timedelta | None) -> None:
        if self._children:
            seconds = None if limit is None else limit.total_seconds()
            await asyncio.wait({child.gone for child in self._children}, timeout=seconds)

    async def _run(self, key: str, run: _Run, call: ProcessCall) -> ProcessOutcome:
        while True:
            child = await self._take(call.memory_limit)
            outcome = await self._call(child, key, run, call)
            # Race: an idle child may die as it is taken. Its handler has not begun, so another child may try.
            died_while_idle = outcome.status == "died" and child.began is None and child.calls > 1
            if run.killed or self._closed or not died_while_idle:
                return outcome

    async def _call(self, child: _Child, key: str, run: _Run, call: ProcessCall) -> ProcessOutcome:
        def on_note(kind: str, body: bytes) -> None:
            if self._on_message is not None:
                self._on_message(key, kind, body)

        if run.killed:
            self._give_back(child)
            return ProcessOutcome("died", encoded_death(Exit(signal=signal.SIGKILL), ours=True))
        answer = child.call(call, on_note)
        run.child = child
        if run.cancelled:
            child.cancel()
        try:
            return await answer
        except asyncio.CancelledError:
            child.kill()
            raise
        finally:
            run.child = None
            self._give_back(child)

    async def _take(self, memory_limit: int | None) -> _Child:
        self._refuse_if_closed()
        while self._idle:
            child = self._idle.pop()  # the most recently used, so that surplus children reach their idle limit
            assert child.rest is not None
            child.rest.cancel()
            if memory_limit is not None and (data_size(child.pid) or 0) > memory_limit // 2:
                child.end()  # memory leaked by earlier calls must not count against this one's limit
            if child.usable:
                return child
        return await self._start_unless_cancelled()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Unavailable("the process pool is closed")

    async def _start_unless_cancelled(self) -> _Child:
        starting = asyncio.create_task(self._start())
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        try:
            # Shielded: a process half started cannot be taken back; if the call is cancelled, `_keep` pools the child.
            child = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._keep)
            raise
        self._refuse_if_closed()
        return child

    async def _start(self) -> _Child:
        loop = asyncio.get_running_loop()
        try:
            sock, popen = await loop.run_in_executor(self._executor, spawn, self._invoke)
        except OSError as error:
            raise Unavailable(f"no child process could be started: {error}") from error
        child = _Child(popen, self._executor)
        await loop.create_unix_connection(lambda: child, sock=sock)
        self._children.add(child)
        child.gone.add_done_callback(lambda _: self._forget(child))
        return child

    def _keep(self, starting: asyncio.Task[_Child]) -> None:
        """Keep a child that started after its call was cancelled, for the next call."""
        if not starting.cancelled() and starting.exception() is None:
            self._give_back(starting.result())

    def _give_back(self, child: _Child) -> None:
        if not child.usable:
            return
        if self._closed or child.calls >= self._max_calls:
            child.end()
            return
        child.rest = asyncio.get_running_loop().call_later(self._idle_limit.total_seconds(), self._retire, child)
        self._idle.append(child)

    def _retire(self, child: _Child) -> None:
        self._idle.remove(child)
        child.end()

    def _forget(self, child: _Child) -> None:
        self._children.discard(child)
        if child in self._idle:
            self._idle.remove(child)
        if child.rest is not None:
            child.rest.cancel()
