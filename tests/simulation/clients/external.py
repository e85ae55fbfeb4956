"""Those outside: who claims external jobs, who ends what was handed over, and who says what they should not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rota.core.external.external import Assignment
from rota.errors import RotaError, Unavailable
from tests.simulation.application.coordination_jobs import EXTERNAL
from tests.simulation.application.data_jobs import DATA_EXTERNAL, acts_of
from tests.simulation.clients.calls import ask
from tests.simulation.script.entries import Answer, ChangeJob, ExternalWorker

if TYPE_CHECKING:
    from tests.simulation.world.history import Call
    from tests.simulation.world.processes import ClientProcess

_MOST = 3
_BEAT = 3.0
_SOON = 0.5
_LOOKS = 0.7
_STALE = 1


async def answer(process: ClientProcess, entry: Answer) -> None:
    """All that wait now, each under the fence that it was handed over with; `stale` ones under others."""
    for run_id, seen in sorted(process.world.observer.runs.items()):
        if entry.verb == "early" and seen.lease and seen.job in ("asker", "giver"):  # nobody handed it over yet
            await _complete(process, run_id, seen.lease.fence)
        if seen.external is None or entry.verb == "early":
            continue
        fence = seen.external.fence
        match entry.verb:
            case "stale":
                await _complete(process, run_id, max(1, fence - _STALE) if fence > 1 else fence + _STALE)
            case "beat":
                await _say(process, "heartbeat", run_id, fence)
            case "twice":
                await _complete(process, run_id, fence)
                await _complete(process, run_id, fence)
            case "otherwise":
                await _complete(process, run_id, fence)
                await _fail(process, run_id, fence)
            case "fail":
                await _fail(process, run_id, fence)
            case "refuse":
                await _fail(process, run_id, fence, retry=False)
            case _:
                await _complete(process, run_id, fence)


async def outsider(process: ClientProcess, entry: ExternalWorker) -> None:
    """Claims one after the other, and works on each at the same time as on the others."""
    world = process.world
    until = world.loop.time() + entry.span
    held: list[tuple[str, int]] = []
    has_data_jobs = any(isinstance(one, ChangeJob) for one in world.script.entries)
    jobs = None if has_data_jobs else list(EXTERNAL)  # such jobs come and go: whatever there is
    while world.loop.time() < until:
        try:
            found = await process.client.external.claim(process.worker_id, jobs=jobs, max=_MOST, held=held)
        except Unavailable:
            await asyncio.sleep(_LOOKS)
            continue
        except RotaError as error:  # nobody has declared them yet
            world.note(f"{process.name} claims nothing: {type(error).__name__}")
            await asyncio.sleep(_LOOKS)
            continue
        for mine in found:
            held.append((mine.run_id, mine.fence))
            world.loop.spawn(process, work(process, mine, held))
        await asyncio.sleep(_LOOKS)


async def work(process: ClientProcess, mine: Assignment, held: list[tuple[str, int]]) -> None:
    """By its act: `ok`, `beat` (and say so all the while), `twice`, `fail`, `refuse`, `forget`, `late`."""
    world = process.world
    acts = acts_of(mine.payload)
    word, _, amount = acts[min(mine.attempt, len(acts)) - 1].partition(":")
    seconds, run_id, fence = float(amount or 0), mine.run_id, mine.fence
    if world.healed_at is not None:
        word, seconds = "ok", _SOON
    world.note(f"{process.worker_id} has {run_id[-6:]} (fence {fence}, attempt {mine.attempt}): {word}:{amount}")
    if word == "forget":
        return
    if mine.job in DATA_EXTERNAL and word == "steps":
        await _in_steps(process, mine)
    left = seconds
    while word != "late" and left > _BEAT:
        await asyncio.sleep(_BEAT)
        left -= _BEAT
        told = await _say(process, "heartbeat", run_id, fence)
        if told.answer is not None and told.answer.cancelling:
            await _say(process, "cancelled", run_id, fence)
            return
    await asyncio.sleep(left)
    match word:
        case "fail":
            await _fail(process, run_id, fence)
        case "refuse":
            await _fail(process, run_id, fence, retry=False)
        case "twice":
            await _complete(process, run_id, fence)
            await _complete(process, run_id, fence)
        case _:
            await _complete(process, run_id, fence)
    held.remove((run_id, fence))


async def _in_steps(process: ClientProcess, mine: Assignment) -> None:
    for step in ("fetch", "seal"):
        for state in ("running", "succeeded"):
            act = partial(process.client.external.step, mine.run_id, mine.fence, step, state)
            await _ask(process, f"step {step}", mine.run_id, mine.fence, act)


async def _complete(process: ClientProcess, run_id: str, fence: int) -> Call:
    process.world.diary.given[run_id, fence] = {"fence": fence}
    act = partial(process.client.external.complete, run_id, fence, {"fence": fence})
    return await _ask(process, "complete", run_id, fence, act)


async def _fail(process: ClientProcess, run_id: str, fence: int, *, retry: bool = True) -> Call:
    act = partial(process.client.external.fail, run_id, fence, "no", retry=retry)
    return await _ask(process, "fail", run_id, fence, act)


async def _say(process: ClientProcess, verb: str, run_id: str, fence: int) -> Call:
    return await _ask(process, verb, run_id, fence, partial(getattr(process.client.external, verb), run_id, fence))


async def _ask(process: ClientProcess, verb: str, run_id: str, fence: int, act: Callable[[], Awaitable[Any]]) -> Call:
    return await ask(process, verb, run_id, act, insist=True, options={"fence": fence})
