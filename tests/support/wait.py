"""Wait for a condition, not for a length of time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE = 40.0


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await _holds(condition()):
            await asyncio.sleep(0.005)


async def _holds(answer: bool | Awaitable[bool]) -> bool:
    return answer if isinstance(answer, bool) else await answer
