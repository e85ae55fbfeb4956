"""Handlers that work in steps: what their payload says they do in each, with words about it, and in a transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from rota.core.progress.control_flow import Cancelled, Fail, Snooze
from rota.engine.handlers.context import Context

if TYPE_CHECKING:
    from tests.simulation.world.processes import Process

log = logging.getLogger("simulation")
log.setLevel(logging.INFO)

SHORT = 1.0
MOST_SNOOZES = 4  # or it would never end
REST, TRANSACTION = "rest", "tx"
_TICKS = 3

SIGNALS: dict[str, Callable[[], Exception]] = {
    "raise": lambda: ValueError("as its payload says"),
    "fail": lambda: Fail("for good"),
    "snooze": lambda: Snooze("2s"),
}


class Part(msgspec.Struct, frozen=True):
    """`pay:2:raise`: a step, how long it takes, and what happens at its end. `rest` is done outside of any step.

    crash: the process dies in the middle. die: it dies when all is done but not yet recorded. give_up: the handler
    loses patience with its own step half-way, and goes on without it. still: it says nothing, so it hears nothing.
    Of a transaction (`tx`): finish, with the run's end; abort: by an exception; anything else: without its end.
    """

    id: str
    seconds: float
    what: str = ""

    @classmethod
    def parse(cls, text: str) -> Part:
        id, seconds, *what = text.split(":")
        return cls(id, float(seconds), what[0] if what else "")


async def perform(process: Process, ctx: Context, act: str) -> None:
    """One after the other: `a:1,b:2`. At the same time: `a:1+b:2`, each of which may be several: `a:1>b:2+c:3`."""
    for group in act.split(","):
        branches = [[Part.parse(text) for text in branch.split(">")] for branch in group.split("+")]
        if len(branches) == 1:
            await _branch(process, ctx, branches[0])
        else:  # each comes to its own end: what one of them meets with is no reason to interrupt the others
            for error in await asyncio.gather(*(_to_its_end(process, ctx, one) for one in branches)):
                if error is not None:
                    raise error
    process.world.diary.effect(process, ctx)


async def _to_its_end(process: Process, ctx: Context, parts: list[Part]) -> BaseException | None:
    try:
        await _branch(process, ctx, parts)
    except (Exception, Cancelled) as error:
        return error
    return None


async def _branch(process: Process, ctx: Context, parts: list[Part]) -> None:
    for part in parts:
        if part.id == REST:
            await _work(process, ctx, part)
            _end(process, ctx, part)
        elif part.id == TRANSACTION:
            await _transaction(process, ctx, part)
        elif part.what == "give_up":
            try:
                async with asyncio.timeout(_seconds(process, part) / 2):
                    await _step(process, ctx, part)
            except TimeoutError:
                ctx.checkpoint()
        else:
            await _step(process, ctx, part)


async def _step(process: Process, ctx: Context, part: Part) -> None:
    diary = process.world.diary

    async def work() -> str:
        diary.step(process, ctx, "begins", part)
        try:
            await _work(process, ctx, part)
        except BaseException as error:
            diary.step(process, ctx, "cut", part, type(error).__name__)
            raise
        result = f"{part.id} under fence {ctx.fence} of {ctx.run_id[-6:]}"
        diary.step(process, ctx, "does", part, result)
        await _die(process, part, "die")
        _end(process, ctx, part)
        return result

    diary.opening.add((ctx.run_id, ctx.fence, part.id))
    try:
        got = await ctx.step(part.id, work)
    except BaseException as error:
        diary.step(process, ctx, "leaves", part, type(error).__name__)
        raise
    diary.step(process, ctx, "gets", part, got)


async def _work(process: Process, ctx: Context, part: Part) -> None:
    """Time passes, and now and then it says how far it is; which is a checkpoint, too."""
    seconds = _seconds(process, part)
    if part.what == "still":
        await asyncio.sleep(seconds)
        return
    for tick in range(_TICKS):
        _say(process, ctx, part, lines=int(tick == 0))
        if part.id != REST:
            ctx.progress(10.0 * tick, step=part.id)
        await asyncio.sleep(seconds / _TICKS)
        await _die(process, part, "crash")


def _say(process: Process, ctx: Context, part: Part, lines: int = 1) -> None:
    """How far it is, and a line for its log."""
    process.world.diary.says(ctx, lines=lines)
    for _ in range(lines):
        log.info("%s of %s", part.id, ctx.run_id[-6:])
    ctx.progress(float(process.world.diary.said[ctx.run_id, ctx.fence]))


def _seconds(process: Process, part: Part) -> float:
    """When faults are over, how long it all takes shall depend on rota."""
    return part.seconds if process.world.healed_at is None else min(part.seconds, SHORT)


async def _die(process: Process, part: Part, what: str) -> None:
    if part.what == what and process.world.healed_at is None:
        process.world.kill(process)
        await asyncio.get_running_loop().create_future()


def _end(process: Process, ctx: Context, part: Part) -> None:
    if part.what == "snooze" and process.world.diary.begun[ctx.run_id] > MOST_SNOOZES:
        return
    if part.what in SIGNALS:
        signal = SIGNALS[part.what]()
        raise signal


async def _transaction(process: Process, ctx: Context, part: Part) -> None:
    finishes = part.what == "finish"
    async with ctx.transaction() as tx:
        await tx.execute(f"insert into proof_effect values ('{ctx.run_id}', {ctx.fence}, {int(finishes)})")
        _say(process, ctx, part)  # which is to be there when the run is over
        await asyncio.sleep(_seconds(process, part))
        if part.what == "abort":
            raise ValueError("all of it is to be undone")
        if finishes:
            process.world.diary.step(process, ctx, "finishes", part)
            tx.finish({"fence": ctx.fence, "attempt": ctx.attempt})
    if finishes:
        process.world.diary.finished.add((ctx.run_id, ctx.fence))
