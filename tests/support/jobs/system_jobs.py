"""Jobs that system tests let real workers run, each with an entry in a ledger that rota does not know.

As a program it is a producer: `python -m tests.support.jobs.system_jobs 500` enqueues 500 runs and prints their ids.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from rota import Context, Rota, Unavailable

LEDGER = "SYSTEM_TEST_LEDGER"

app = Rota()


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """`at` is the machine's monotonic clock, which all its processes share. `stop`: it ended by an exception."""

    what: Literal["begin", "end", "stop"]
    run_id: str
    attempt: int
    fence: int
    pid: int
    at: float


class Ledger:
    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, what: Literal["begin", "end", "stop"], ctx: Context) -> None:
        """One write to a file opened for appending: a kill leaves whole lines, whoever else writes."""
        entry = Entry(what, ctx.run_id, ctx.attempt, ctx.fence, os.getpid(), time.monotonic())
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, msgspec.json.encode(entry) + b"\n")
        finally:
            os.close(file)

    def entries(self, what: str | None = None, run_id: str | None = None) -> list[Entry]:
        # A reader may see a write half done, so what follows the last line feed is not a line yet.
        *lines, _ = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        entries = [msgspec.json.decode(line, type=Entry) for line in lines]
        return [one for one in entries if what in (None, one.what) and run_id in (None, one.run_id)]


@contextmanager
def entered(ctx: Context) -> Iterator[None]:
    ledger = Ledger(Path(os.environ[LEDGER]))
    ledger.write("begin", ctx)
    try:
        yield
    except BaseException:
        ledger.write("stop", ctx)
        raise
    ledger.write("end", ctx)


def turn(ctx: Context, seconds: list[float]) -> float:
    """Return how long this attempt takes: `seconds` has the first time, then any later time."""
    return seconds[0] if ctx.fence == 1 else seconds[-1]


@app.job(max_attempts=50)
def quick(ctx: Context, number: int = 0) -> int:
    with entered(ctx):
        return number


@app.job(max_attempts=50)
async def nap(ctx: Context, seconds: list[float]) -> None:
    with entered(ctx):
        await asyncio.sleep(turn(ctx, seconds))


@app.job(replicas=2, unique=True)
async def share(ctx: Context, key: str, until: str) -> None:
    """Be done by two workers, each until there is a file of this name."""
    with entered(ctx):
        while not Path(until).exists():  # noqa: ASYNC240  a stat takes no time
            await asyncio.sleep(0.01)


@app.job
async def hold(ctx: Context, until: str) -> None:
    """End as soon as there is a file of this name."""
    with entered(ctx):
        while not Path(until).exists():  # noqa: ASYNC240  a stat takes no time
            await asyncio.sleep(0.01)


@app.job(max_attempts=50)
def nap_in_thread(ctx: Context, seconds: list[float]) -> None:
    with entered(ctx):
        time.sleep(turn(ctx, seconds))


@app.job(max_attempts=50, isolation="process")
def nap_in_process(ctx: Context, seconds: list[float]) -> None:
    with entered(ctx):
        time.sleep(turn(ctx, seconds))


@app.job(max_attempts=50, on_lost="fail")
def pay(ctx: Context, seconds: list[float]) -> None:
    with entered(ctx):
        time.sleep(turn(ctx, seconds))


@app.job
async def listen(ctx: Context) -> None:
    with entered(ctx):
        while True:
            ctx.checkpoint()
            await asyncio.sleep(0.01)


@app.job
def listen_in_thread(ctx: Context) -> None:
    listen_in_process(ctx)


@app.job(isolation="process")
def listen_in_process(ctx: Context) -> None:
    with entered(ctx):
        while True:
            ctx.checkpoint()
            time.sleep(0.01)


@app.job(cancel_grace="1s")
async def ignore(ctx: Context) -> None:
    with entered(ctx):
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)


@app.job(cancel_grace="1s")
def ignore_in_thread(ctx: Context) -> None:
    with entered(ctx):
        time.sleep(60)


@app.job(cancel_grace="1s", isolation="process")
def ignore_in_process(ctx: Context) -> None:
    with entered(ctx):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)


@app.job
async def block_the_loop(ctx: Context, seconds: float) -> None:
    with entered(ctx):
        time.sleep(seconds)  # noqa: ASYNC251  the fault that is tested


@app.job
def leave_a_thread(ctx: Context) -> None:
    with entered(ctx):
        threading.Thread(target=time.sleep, args=(60,), daemon=False).start()


@app.job
def burn_in_thread(ctx: Context, seconds: float) -> int:
    with entered(ctx):
        end, turns = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            turns += 1
        return turns


@app.job(max_attempts=2, backoff="100ms", isolation="process")
def die(ctx: Context, by: Literal["exit", "kill"], times: int) -> int:
    with entered(ctx):
        if ctx.attempt > times:
            return ctx.attempt
        if by == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out
        time.sleep(60)
        raise AssertionError("unreachable")


@app.job(max_attempts=3)
def poison(ctx: Context) -> None:
    """Kill the whole worker from a thread."""
    with entered(ctx):
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)


@app.job(max_attempts=2, backoff="1500ms")
def fail_at_first(ctx: Context) -> None:
    with entered(ctx):
        if ctx.attempt == 1:
            raise RuntimeError("not yet")


def produce(count: int) -> None:
    """Says which runs were acknowledged; what was not may be there or not."""
    for number in range(count):
        with suppress(Unavailable):
            print(quick.enqueue(number=number).id, flush=True)
    app.close()


if __name__ == "__main__":
    produce(int(sys.argv[1]))
