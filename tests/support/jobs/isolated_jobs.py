"""Handlers that a worker's child processes import by name."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path

from rota import Context, Retry, SyncContext


def leave_pid_and_hang(place: str) -> None:
    _leave_pid(place)
    time.sleep(1_000)


def leave_pid_and_hang_with_context(ctx: Context, place: str) -> None:
    leave_pid_and_hang(place)


def stop_at_checkpoint(ctx: Context, place: str) -> None:
    _leave_pid(place)
    while True:
        ctx.checkpoint()
        time.sleep(0.005)


def count(ctx: Context, n: int) -> int:
    for _ in range(n):
        ctx.count("steps")
    return os.getpid()


def unstorable() -> object:
    return {1, 2, object()}


def vanish() -> None:
    os._exit(3)


def _leave_pid(place: str) -> None:
    Path(place).with_suffix(".part").write_text(str(os.getpid()))
    Path(place).with_suffix(".part").rename(place)


def fail_with(message: str) -> None:
    raise LookupError(message)


def two_steps(ctx: SyncContext) -> list[int]:
    numbers = [ctx.step("one", lambda: 1), ctx.step("two", lambda: 2)]
    if ctx.attempt == 1:
        raise Retry(after="0s")
    return numbers


async def two_async_steps(ctx: Context) -> list[int]:
    numbers = [await ctx.step("one", lambda: 1), await ctx.step("two", _two)]
    if ctx.attempt == 1:
        raise Retry(after="0s")
    return numbers


async def _two() -> int:
    return 2


def talk(ctx: SyncContext) -> None:
    logging.getLogger().setLevel(logging.INFO)
    ctx.progress(50, "almost")
    ctx.log.info("hello")
    ctx.step("work", lambda: ctx.progress(70, "well on", step="work"))
    logging.getLogger("mine").info("from logging")


async def pay(ctx: Context) -> None:
    async with ctx.transaction() as tx:
        await tx.execute("insert into account values ('ada', 5)")
        ctx.progress(90, "paying")
        ctx.log.info("inside")
        tx.finish("paid")


def pay_plainly(ctx: SyncContext) -> None:
    with ctx.transaction() as tx:
        tx.execute("insert into account values ('bob', 5)")
        ctx.progress(90, "paying")
        ctx.log.info("inside")
        tx.finish("paid plainly")


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def hold(megabytes: int) -> int:
    return len(bytearray(b"x") * (megabytes << 20))


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def fail_until(ctx: Context, path: str, tries: int) -> int:
    """Raises until it has been called `tries` times, by whatever process."""
    file = Path(path)
    count = len(file.read_text()) + 1 if file.exists() else 1
    file.write_text("x" * count)
    ctx.count("calls")
    if count < tries:
        raise LookupError(f"call {count}")
    return count


async def slow_function(ctx: Context) -> None:
    await ctx.step("slow", time.sleep, 60)


async def fails_once(ctx: Context) -> int:
    tried: list[int] = []

    def fetch() -> int:
        tried.append(1)
        if len(tried) == 1:
            raise LookupError
        return len(tried)

    try:
        await ctx.step("fetch", fetch)
    except LookupError:
        return await ctx.step("fetch", fetch)
    raise AssertionError("it did not fail")


def name_a_logger_oddly() -> int:
    logging.getLogger("\udcff").error("hello")
    return 7


def until_shutting_down(ctx: SyncContext, place: str) -> str:
    _leave_pid(place)
    while not ctx.shutting_down:
        time.sleep(0.005)
    return "told"


def renew_when_told(ctx: SyncContext, place: str) -> None:
    """Renews its lease once the file `go` is there, and ends once `end` is."""
    _leave_pid(place)
    for name in ("go", "end"):
        while not Path(place).with_name(name).exists():
            time.sleep(0.005)
        if name == "go":
            ctx.heartbeat()


def last_words(ctx: SyncContext) -> None:
    ctx.progress(60, "about to")
    ctx.log.info("first")
    ctx.log.warning("about to die")
    os.kill(os.getpid(), signal.SIGKILL)


async def results_of_parents(ctx: Context) -> list[object]:
    return [parent.result for parent in await ctx.parents()]


def results_of_parents_at_once(ctx: SyncContext) -> list[object]:
    return [parent.result for parent in ctx.parents()]


async def hand_over(ctx: Context) -> object:
    return await ctx.wait_for_external("2h", step="approval")


def hand_over_plainly(ctx: SyncContext) -> object:
    return ctx.wait_for_external("2h", step="approval")
