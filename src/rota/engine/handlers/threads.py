"""Daemon threads for sync handlers: a handler that never returns must not keep the process from exiting."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_Work = tuple[Future[Any], contextvars.Context, Callable[[], Any]]


class HandlerThreads:
    """Thread pool that grows on demand up to `size` and keeps its threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._inbox: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    def grow(self, size: int) -> None:
        self._size = max(self._size, size)

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._inbox.put((future, contextvars.copy_context(), call))
        # The semaphore counts idle threads. Taking a permit reserves one for this call, so no thread is started for it.
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._size:
            thread = threading.Thread(target=self._serve, name=f"rota-handler-{len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def _serve(self) -> None:
        while work := self._inbox.get():
            future, context, call = work
            if future.set_running_or_notify_cancel():
                try:
                    result = context.run(call)
                except StopIteration as error:  # a future cannot carry it, and the attempt would never end
                    future.set_exception(RuntimeError(f"the handler raised {error!r}"))
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
            del work, future, context, call  # an idle thread must not keep the last call's objects alive
            self._idle.release()

    def close(self) -> None:
        for _ in self._threads:
            self._inbox.put(None)
