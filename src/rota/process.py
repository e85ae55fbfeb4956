"""Support for long-running programs: the event loop, a forced exit, and systemd notifications."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import socket
import threading
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger("rota.cli")

EndWithin = Callable[[float], None]


def run_loop(main: Callable[[EndWithin], Coroutine[Any, Any, int]], *, goes_on: bool = False) -> int:
    """Run `main` on an event loop and return its exit code.

    `main` receives a function to call when a signal arrives: that many seconds later the process is ended by force.
    Without it, a handler that blocks the loop would keep `main` from seeing the signal, and one that refuses to be
    cancelled would keep the loop from closing. A forced exit uses the code of `main`, or 1 if `main` had not returned:
    then runs may be left to the reaper. With `goes_on`, the forced exit is called off after the loop.
    """
    last_resort = ForcedExit()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            last_resort.exit_code = runner.run(main(last_resort.end_within))
    finally:
        if goes_on:
            last_resort.call_off()
    return last_resort.exit_code


class ForcedExit:
    """Thread that ends the process a given time after `end_within`.

    Commands never call it off: after the loop, a thread that a handler left can keep Python from exiting. The thread is
    started in advance. A signal handler cannot start one: the signal may interrupt code that holds the lock for
    starting threads. SimpleQueue is reentrant, and safe to use there.
    """

    def __init__(self) -> None:
        self.exit_code = 1
        self._off = threading.Event()
        self._limit: queue.SimpleQueue[float] = queue.SimpleQueue()
        threading.Thread(target=self._watch, name="rota-last-resort", daemon=True).start()

    def end_within(self, seconds: float) -> None:
        self._limit.put(seconds)

    def call_off(self) -> None:
        self._off.set()
        self._limit.put(0)

    def _watch(self) -> None:
        if self._off.wait(self._limit.get()):
            return
        # Log in a thread: the blocked code may hold the lock of a log handler.
        logging_thread = threading.Thread(
            target=log.error, args=("forced exit: a handler or thread does not stop",), daemon=True
        )
        logging_thread.start()
        logging_thread.join(0.2)
        os._exit(self.exit_code)


def tell_manager(state: str) -> None:
    """Notify systemd (`Type=notify`) of READY=1 or STOPPING=1, if it asked for it."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address or not hasattr(socket, "AF_UNIX"):
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.connect("\0" + address[1:] if address.startswith("@") else address)
        sock.sendall(state.encode())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
