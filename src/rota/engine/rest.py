"""Rest of a loop between two steps: as long as the loop wants, or longer while it has nothing to do, unless woken."""

from __future__ import annotations

import asyncio
import contextlib
import math


class Rest:
    """`hold` prolongs a rest: nothing is due until then. `wake` ends it.

    `turns` counts wakes and steps: a look at the database that began before one of them knows nothing of it.
    """

    def __init__(self) -> None:
        self.turns = 0
        self._woken = False
        self._changed = asyncio.Event()
        self._held_until = 0.0
        self._wants = self._until = 0.0
        self._soon = math.inf

    @property
    def is_held(self) -> bool:
        return self._held_until > asyncio.get_running_loop().time()

    def wake(self) -> None:
        self.turns += 1
        self._woken, self._held_until = True, 0.0
        self._changed.set()

    def hint(self) -> None:
        """Wake, unless nothing was due at the last look: then whoever looked looks again."""
        if not self.is_held:
            self.wake()

    def stir(self, seconds: float) -> None:
        """Wake whoever is held, and others after so many seconds: one step for all that comes until then."""
        if self.is_held:
            self.wake()
            return
        self.turns += 1
        self._soon = min(self._soon, asyncio.get_running_loop().time() + seconds)  # also if it comes during a step
        self._changed.set()

    def hold(self, seconds: float, at_least: float) -> bool:
        """Rest for so long if not woken. Return False for a loop that steps, or will in less than `at_least`."""
        if self._wants < at_least or self._woken or self._soon < math.inf:
            return False
        self._held_until = asyncio.get_running_loop().time() + seconds
        self._changed.set()
        return True

    def release(self) -> None:
        """End a hold: wake whoever is held, and leave the others to themselves."""
        if self._held_until:
            self.wake()

    def shorten(self, seconds: float) -> None:
        """End the rest that is being taken after so many seconds from now, if it would last longer."""
        until = asyncio.get_running_loop().time() + seconds
        if self._until > until:
            self._until = until
            self._changed.set()

    async def take(self, seconds: float) -> None:
        """Rest. A wake since the last rest began ends this one at once: it came during a step."""
        loop = asyncio.get_running_loop()
        self._until, self._wants = loop.time() + seconds, seconds
        while not self._woken and (left := min(self._soon, max(self._until, self._held_until)) - loop.time()) > 0:
            self._changed.clear()
            # Not `wait_for`: woken and cancelled in the same moment, it swallows the cancellation.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()
        if seconds <= 0:
            await asyncio.sleep(0)
        self.turns += 1
        self._woken, self._held_until, self._wants, self._soon = False, 0.0, 0.0, math.inf
