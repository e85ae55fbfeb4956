"""What programs that stay need: an event loop to run in, an end in time, and a word to who started them."""

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
    """The exit code of `main`, which is given what to call when a signal comes: so many seconds later it is over.

    Without that, a handler that blocks the loop would keep `main` from seeing the signal, and one that refuses to be
    cancelled the loop from closing. A process that must be ended exits with the code of `main`, or with 1 if `main`
    had not returned: then runs may be left to the reaper. One that `goes_on` after the loop is no longer ended.
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
    """Once told, it ends the process. Commands never call it off: after the loop, a thread that a handler left can keep
    Python from ending.

    It waits in a thread from the start. In a signal handler none can be started: the signal may have come while
    another one was starting, and holds the lock. SimpleQueue is made to be used there.
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
        # Whoever blocks may hold the lock of the log.
        word = threading.Thread(target=log.error, args=("something does not stop: ended without it",), daemon=True)
        word.start()
        word.join(0.2)
        os._exit(self.exit_code)


def tell_manager(state: str) -> None:
    """To systemd, if it wants to know (`Type=notify`): READY=1, STOPPING=1."""
    place = os.environ.get("NOTIFY_SOCKET")
    if not place or not hasattr(socket, "AF_UNIX"):
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as talking:
        talking.connect("\0" + place[1:] if place.startswith("@") else place)
        talking.sendall(state.encode())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
