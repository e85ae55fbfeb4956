"""How a measured process speaks with the runner; `benchmarks/peers/node/protocol.mjs` says the same in JavaScript.

    role      does                                               says
    prepare   makes the tables                                   done
    bulk      n jobs in batches, at once or at a rate            sent (every 10 ms), seconds
    single    n jobs one by one over c connections               seconds
    trickle   one job every so often, carrying the time          seconds
    work      runs jobs until killed                             first, handled (every 10 ms), latency_ms

All clocks are the machine's monotonic one, in nanoseconds, so that processes can be compared.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

TICK = 0.01

OnJob = Callable[[int | None], None]


class Peer(Protocol):
    """A contender in one process. A job carries nothing, or the instant it was sent."""

    def __init__(self, url: str, kind: str = ...) -> None: ...

    async def prepare(self) -> None: ...

    async def open(self, connections: int) -> None:
        """Connect for enqueueing."""

    async def enqueue_many(self, count: int) -> None: ...

    async def enqueue(self, connection: int, sent: int | None) -> None: ...

    async def work(self, on_job: OnJob) -> None:
        """Run jobs for ever; call `on_job` at the start of each."""


def run(peer: type[Peer], role: str, parameters: dict[str, Any]) -> None:
    url, kind = parameters.pop("url"), parameters.pop("kind", None)
    roles: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
        "prepare": _prepare,
        "bulk": _bulk,
        "single": _single,
        "trickle": _trickle,
        "work": _work,
    }
    run_with_quick_loop(roles[role](peer(url, kind) if kind else peer(url), **parameters))


def run_with_quick_loop(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def say(**words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


async def told_to_go() -> None:
    say(ready=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)


async def _prepare(peer: Peer) -> None:
    await told_to_go()
    await peer.prepare()
    say(done=True)


async def _bulk(peer: Peer, n: int, batch: int, rate: float | None = None) -> None:
    await peer.open(1)
    await told_to_go()
    begin = time.monotonic()
    told = 0.0
    for sent in range(0, n, batch):
        if rate is not None:
            await asyncio.sleep(max(0.0, begin + sent / rate - time.monotonic()))
        await peer.enqueue_many(min(batch, n - sent))
        if rate is not None and time.monotonic() - told > TICK:
            told = time.monotonic()
            say(sent=min(sent + batch, n))
    say(sent=n, seconds=time.monotonic() - begin)


async def _single(peer: Peer, n: int, connections: int, shared: bool = False) -> None:
    """`shared`: as many callers, all through the first connection's client."""
    await peer.open(1 if shared else connections)
    callers = [0 if shared else number for number in range(connections)]
    await asyncio.gather(*(peer.enqueue(number, None) for number in callers))
    await told_to_go()
    begin = time.monotonic()

    async def produce(number: int) -> None:
        for _ in range(n // connections):
            await peer.enqueue(number, None)

    await asyncio.gather(*map(produce, callers))
    say(seconds=time.monotonic() - begin)


async def _trickle(peer: Peer, n: int, every: float) -> None:
    await peer.open(1)
    await told_to_go()
    begin = time.monotonic()
    for number in range(n):
        await asyncio.sleep(max(0.0, begin + number * every - time.monotonic()))
        await peer.enqueue(0, time.monotonic_ns())
    say(seconds=time.monotonic() - begin)


async def _work(peer: Peer) -> None:
    handled = 0

    def on_job(sent: int | None) -> None:
        nonlocal handled
        if not handled:
            say(first=time.monotonic_ns())
        handled += 1
        if sent is not None:
            say(latency_ms=(time.monotonic_ns() - sent) / 1e6)

    async def tick() -> None:
        told = 0
        while True:
            await asyncio.sleep(TICK)
            if handled != told:
                told = handled
                say(handled=told)

    await told_to_go()
    ticking = asyncio.create_task(tick())
    await peer.work(on_job)
    await ticking


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The quick loop for every Python contender, so that none is slower for want of it."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
