"""A question of a client's: asked again where that may be, and kept in the diary with its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from rota.errors import RotaError, Unavailable
from tests.simulation.application.jobs import STEPPED
from tests.simulation.world.history import Call

if TYPE_CHECKING:
    from tests.simulation.world.processes import ClientProcess
    from tests.simulation.world.world import World

_TRIES = 4
_REST = 0.7


async def ask(
    process: ClientProcess,
    verb: str,
    what: str,
    act: Callable[[], Awaitable[Any]],
    *,
    insist: bool = False,
    options: dict[str, Any] | None = None,
) -> Call:
    """With `insist`, again when nobody knows whether it was done; only for what may be repeated."""
    world = process.world
    call = Call(world.loop.time(), process.name, verb, what, options=options or {})
    world.diary.calls.append(call)
    for tries_left in reversed(range(_TRIES if insist else 1)):
        try:
            call.answer = await act()
            call.answered_at = world.loop.time()
        except Unavailable:
            if tries_left:
                await asyncio.sleep(_REST)
                continue
        except RotaError as error:
            call.error = f"{type(error).__name__}: {error}"
            call.answered_at = world.loop.time()
        break
    return call


def pick(world: World, draw: float, *, final: bool, at_work: bool = False, own: bool = False) -> str | None:
    """A run that a client knows of, whether it is final or not. `own`: that somebody asked for, no replica."""
    known = [id for id, seen in sorted(world.observer.runs.items()) if (seen.end is not None) == final]
    if at_work:
        runs = world.observer.runs
        known = [id for id in known if runs[id].lease and runs[id].job in STEPPED] or known
    if own:
        known = [id for id in known if world.observer.runs[id].parent_id is None]
    return known[int(draw * len(known))] if known else None
