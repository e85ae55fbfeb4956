"""Lifespans in inline mode, which has no event loop of its own: a thread enters and leaves them."""

from __future__ import annotations

import asyncio

from rota.client.blocking import LoopThread
from rota.engine.worker.lifetime import Lifetime
from rota.registry.jobs import Registry


class InlineLifetime:
    """States of an app's lifespans, and the thread on whose loop they were entered."""

    def __init__(self, registry: Registry) -> None:
        self.thread = LoopThread()
        self._lifetime = Lifetime(registry)
        try:
            self.states = self.thread.call(self._lifetime.enter())
            self._loop = self.thread.call(_this_loop())
        except BaseException:
            self.thread.stop()
            raise

    def is_here(self) -> bool:
        """Return whether the caller runs on that loop, and so must not wait for it."""
        return asyncio._get_running_loop() is self._loop

    def leave(self) -> None:
        self.thread.call(self._lifetime.leave())
        self.thread.stop()


async def _this_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()
