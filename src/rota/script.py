"""Run rota in a plain program without an event loop: in the main thread, or in the background."""

from __future__ import annotations

import importlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

from rota.client.blocking import BlockingClient, LoopThread
from rota.client.client import Client
from rota.core.workers.worker import Queues
from rota.errors import Invalid
from rota.process import run_loop


class ScriptRunner(ABC):
    """The part of `Rota` for programs without an event loop."""

    blocking: BlockingClient

    @abstractmethod
    def running(
        self, *, name: str | None = None, queues: Queues | None = None, labels: Iterable[str] | None = None
    ) -> AbstractAsyncContextManager[Client]: ...

    def run(self, *, http: bool = False, name: str | None = None, queues: Queues | None = None) -> None:
        """Work until SIGTERM or Ctrl-C, like `rota worker`; with `http`, also serve API and dashboard.

        For the main thread of a program that has nothing else to do.
        """
        if threading.current_thread() is not threading.main_thread():
            raise Invalid("app.run() needs the main thread, for signals", hint="`with app.background():` needs none")
        serve = importlib.import_module("rota.server").serve
        run_loop(
            lambda end_within: serve(self, http=http, name=name, queues=queues, on_signal=end_within), goes_on=True
        )

    @contextmanager
    def background(
        self, *, name: str | None = None, queues: Queues | None = None, labels: Iterable[str] | None = None
    ) -> Iterator[BlockingClient]:
        """Work in a thread until the block ends: `with app.background() as client:`.

        A Ctrl-C during start or stop takes effect afterwards.
        """
        thread = LoopThread()
        running = self.running(name=name, queues=queues, labels=labels)
        try:
            try:
                thread.see_through(running.__aenter__())
            except KeyboardInterrupt:  # raised after the start has completed
                thread.see_through(running.__aexit__(None, None, None))
                raise
            try:
                yield self.blocking
            finally:
                thread.see_through(running.__aexit__(None, None, None))
        finally:
            thread.stop()
