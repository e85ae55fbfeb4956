"""Iterable that reports progress as it is consumed."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator, Sized
from typing import Generic, TypeVar

T = TypeVar("T")
Items = Iterable[T] | AsyncIterable[T]

_TURN = 16


class Breath:
    """An awaitable that mostly returns at once; every 16th time it yields to the event loop."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = 0

    def __await__(self) -> Generator[None, None, None]:
        self._taken += 1
        if self._taken % _TURN == 0:
            yield


BREATH = Breath()


class Tracked(Generic[T]):
    """Iterable to be consumed once, with `for` or `async for`."""

    def __init__(
        self, items: Items[T], total: int | None, summary: str | None, progress: Callable[..., Breath]
    ) -> None:
        self._items = items
        self._total = len(items) if total is None and isinstance(items, Sized) else total
        self._summary = summary
        self._progress = progress

    def __iter__(self) -> Iterator[T]:
        if not isinstance(self._items, Iterable):
            raise TypeError("these items are an async iterable: use `async for`")
        count = 0
        self._tell(count)
        for item in self._items:
            yield item
            count += 1
            self._tell(count)

    async def __aiter__(self) -> AsyncIterator[T]:
        count = 0
        await self._tell(count)
        async for item in _one_by_one(self._items):
            yield item
            count += 1
            await self._tell(count)

    def _tell(self, count: int) -> Breath:
        share = min(100.0, 100 * count / self._total) if self._total else None
        far = f"{count} of {self._total}" if self._total is not None else str(count)
        return self._progress(share, f"{self._summary}: {far}" if self._summary else far)


async def _one_by_one(items: Items[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
