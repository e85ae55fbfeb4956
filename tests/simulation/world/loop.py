"""An event loop in virtual time: one thread, no sockets, and a seeded choice of who goes on next.

Whatever is called belongs to a *node*, a process of the simulation: the one in whose context it was scheduled. A node's
own callbacks keep their order, as on any event loop; which node goes next is drawn. Time passes only when nobody has
anything to do. A frozen node's callbacks wait, as under SIGSTOP; a dead one's are dropped, and nothing of it runs
again: no `finally`, no `except`.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

CURRENT: contextvars.ContextVar[Node] = contextvars.ContextVar("node")


class Node:
    """A process: what it has yet to call, and whether it is let."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready: deque[asyncio.Handle] = deque()
        self.dead = False
        self.frozen = False
        self.tasks: list[asyncio.Task[Any]] = []  # kept: a task that is collected would run its `finally`

    @property
    def runs(self) -> bool:
        return not self.dead and not self.frozen

    def context(self) -> contextvars.Context:
        context = contextvars.copy_context()
        context.run(CURRENT.set, self)
        return context

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class Stuck(Exception):
    """Nothing is left to do, and what was waited for has not happened."""


class VirtualLoop(asyncio.AbstractEventLoop):
    def __init__(self, seed: object, patience: float = 1e6) -> None:
        self._random = random.Random(f"{seed}/order")
        self._now = 0.0
        self._patience = patience
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._busy: dict[Node, None] = {}  # those with callbacks, in a reproducible order
        self._count = 0
        self._running = False
        self._closed = False
        self.world = Node("world")
        self.steps = 0
        self.halted = False
        self.complaints: list[str] = []

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        self._timers.clear()
        self._busy.clear()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._enqueue(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Left in the heap; skipped when its time comes."""

    def _enqueue(self, handle: asyncio.Handle) -> None:
        node = handle._context.get(CURRENT, self.world)  # type: ignore[attr-defined]
        if node.dead:
            return
        if not node.ready:
            self._busy[node] = None
        node.ready.append(handle)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def rest(self, seconds: float) -> asyncio.Future[None]:
        """As `asyncio.sleep`, for half of its price: most of what happens in a world is that something takes time."""
        future: asyncio.Future[None] = asyncio.Future(loop=self)
        self.call_at(self._now + seconds, _wake, future)
        return future

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        node = (context or contextvars.copy_context()).get(CURRENT, self.world)
        node.tasks.append(task)
        return task

    def spawn(self, node: Node, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin something in a node."""
        return self.create_task(coro, context=node.context())

    def run_until_complete(self, future: Any) -> Any:
        task = self.create_task(future) if asyncio.iscoroutine(future) else future
        asyncio._set_running_loop(self)
        self._running = True
        try:
            while not task.done() and not self.halted:
                self._turn()
            return task.result() if task.done() else None
        finally:
            self._running = False
            asyncio._set_running_loop(None)

    def _turn(self) -> None:
        node = self._choose()
        if node is None:
            self._pass_time()
            return
        handle = node.ready.popleft()
        if not node.ready:
            del self._busy[node]
        if not handle.cancelled():
            self.steps += 1
            handle._run()

    def _choose(self) -> Node | None:
        if not self._busy:
            return None
        able = [node for node in self._busy if not node.frozen]  # the dead are not among them
        if not able:
            return None
        return able[0] if len(able) == 1 else able[int(self._random.random() * len(able))]

    def _pass_time(self) -> None:
        while self._timers:
            when, _, handle = heapq.heappop(self._timers)
            if handle.cancelled():
                continue
            if when > self._patience:
                break
            self._now = max(self._now, when)
            self._enqueue(handle)
            return
        raise Stuck(f"at {self._now:.3f}s nothing is left to do")

    def kill(self, node: Node) -> None:
        node.dead = True
        node.ready.clear()
        self._busy.pop(node, None)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Tasks of dead nodes are destroyed while pending: that is what death is."""
        if "Task was destroyed" not in context["message"]:
            self.complaints.append(f"{context['message']}: {context.get('exception')!r}")

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    async def shutdown_asyncgens(self) -> None: ...

    async def shutdown_default_executor(self, timeout: float | None = None) -> None: ...
