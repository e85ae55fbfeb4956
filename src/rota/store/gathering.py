"""Gathers what arrives while one batch is under way into the next: many small calls, few transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_BATCH = 1_000
_AT_ONCE = 2


class Gatherer(Generic[Item, Answer]):
    """Alone, an item goes out at once; under load, batches grow by themselves. Each item is answered on its own."""

    def __init__(self, send: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]) -> None:
        self._send = send
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._senders: set[asyncio.Task[None]] = set()

    async def add(self, item: Item) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if len(self._senders) < _AT_ONCE:
            task = asyncio.create_task(self._work())
            self._senders.add(task)
            task.add_done_callback(self._senders.discard)
        return await future

    async def _work(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            try:
                answers = await self._send([item for item, _ in batch])
            except BaseException as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            else:
                for (_, future), answer in zip(batch, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
