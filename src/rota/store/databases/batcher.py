"""Gathers what arrives while one batch is under way into the next: many small calls, few transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from rota.errors import Invalid, NotFound

Item = TypeVar("Item")
Answer = TypeVar("Answer")

Batch = list[tuple[Item, "asyncio.Future[Answer]"]]

_BATCH = 1_000
# While one batch waits for its commit, another is on its way. More senders would only make the batches smaller.
_AT_ONCE = 2


class Batcher(Generic[Item, Answer]):
    """Alone, an item goes out at once; under load, batches grow by themselves. Each item is answered on its own."""

    def __init__(self, send: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]) -> None:
        self._send = send
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._senders: set[asyncio.Task[None] | None] = set()

    async def add(self, item: Item) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        # No lock: everything here runs on one event loop, and nothing is awaited between the look and the change.
        if len(self._senders) < _AT_ONCE:
            self._senders.add(asyncio.create_task(self._work()))
        return await future

    async def _work(self) -> None:
        """Leaves the senders in the same breath as it finds nothing waiting: whoever comes later starts another."""
        task = asyncio.current_task()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                await self._send_batch(batch)
        finally:
            self._senders.discard(task)

    async def _send_batch(self, batch: Batch[Item, Answer]) -> None:
        try:
            answers = await self._send([item for item, _ in batch])
        except (Invalid, NotFound) as error:
            if len(batch) == 1:
                _refuse(batch, error)
            for entry in batch if len(batch) > 1 else ():  # one invalid item fails the whole batch: one by one
                await self._send_batch([entry])
        except BaseException as error:
            _refuse(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                # Its caller may have been cancelled; the item was sent nevertheless.
                if not future.done():
                    future.set_result(answer)


def _refuse(batch: Batch[Any, Any], error: BaseException) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
