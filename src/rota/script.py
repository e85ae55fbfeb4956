"""Run rota in a plain program without an event loop: in the main thread, or in the background."""

from __future__ import annotations

import importlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from rota.core.workers.worker import Queues
from rota.errors import Invalid
from rota.process import run_loop

if TYPE_CHECKING:
    from rota.client.blocking import BlockingClient
    from rota.client.client import Client


class ScriptRunner(ABC):
    """The part of `Rota` for programs without an event loop."""

    @cached_property
    def blocking(self) -> BlockingClient:
        """The client for code without an event loop, made at its first use."""
        from rota.client.blocking import BlockingClient  # many programs that import an app enqueue nothing

        # Threads that come here at once get the same one.
        client: BlockingClient = vars(self).setdefault("blocking", BlockingClient(self.open_client))
        return client

    @property
    def _blocks(self) -> bool:
        """Tell whether the blocking client is connected."""
        return "blocking" in vars(self) and self.blocking.is_open

    @abstractmethod
    async def open_client(self) -> Client: ...

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
        from rota.client.blocking import LoopThread

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

    def close(self) -> None:
        """Close the blocking client."""
        if self._blocks:
            self.blocking.close()
