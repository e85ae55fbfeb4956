"""Supervisor of several worker processes: starts them, restarts them, stops them together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from rota.process import tell_manager

_FIRST_REST = 0.5
_LONGEST_REST = 30.0
_LONG_LIFE = 60.0
# Exit codes after which a restart would end in the same way: wrong usage, or a bad configuration.
_FOR_GOOD = (2, 78)

log = logging.getLogger("rota.supervisor")


async def supervise(commands: Sequence[Sequence[str]]) -> int:
    """Keep a process alive for each command until a signal. Return the highest of their exit codes."""
    supervisor = Supervisor()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, supervisor.stop, number)
    tell_manager("READY=1")  # the supervisor is ready, even if a worker has to be restarted
    return max(await asyncio.gather(*(supervisor.keep(command) for command in commands)))


class Supervisor:
    def __init__(self) -> None:
        self._children: set[Process] = set()
        self._stopping = asyncio.Event()
        self._signal = signal.SIGTERM

    def stop(self, number: signal.Signals) -> None:
        """Pass the first signal on to the workers; kill them at the second."""
        self._signal = signal.SIGKILL if self._stopping.is_set() else number
        self._stopping.set()
        for child in self._children:
            self._send_signal(child)

    def _send_signal(self, child: Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(self._signal)

    async def keep(self, command: Sequence[str]) -> int:
        clock = asyncio.get_running_loop().time
        delay = _FIRST_REST
        while True:
            began = clock()
            code = await self._run_child(command)
            if self._stopping.is_set():
                return code
            if code == 0:  # an operator or a signal asked this worker to stop, so it is not wanted any more
                log.info("a worker process was asked to stop; no other takes its place")
                return code
            if code in _FOR_GOOD:
                self.stop(signal.SIGTERM)
                return code
            delay = _FIRST_REST if clock() - began > _LONG_LIFE else delay
            log.warning("a worker process ended with %s; another starts in %gs", code, delay)
            if await self._stopped_within(delay):
                return code
            delay = min(_LONGEST_REST, delay * 2)

    async def _run_child(self, command: Sequence[str]) -> int:
        # A process group of its own: otherwise Ctrl-C would reach each child twice, from the terminal and from here.
        child = await asyncio.create_subprocess_exec(*command, stdin=PIPE, process_group=0)
        self._children.add(child)
        if self._stopping.is_set():
            self._send_signal(child)
        try:
            code = await child.wait()
        finally:
            self._children.discard(child)
        if code == -signal.SIGTERM and self._stopping.is_set():
            return 0  # stopped before it could do anything, not even handle the signal
        return code if code >= 0 else 128 - code

    async def _stopped_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()


def stop_when_orphaned() -> None:
    """Stop this worker when its supervisor dies: stdin then ends, even after kill -9."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="rota-orphan-watch", daemon=True).start()
