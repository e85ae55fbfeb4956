"""Test rests between steps: prolonged while nothing is due, ended by a wake, never prolonged past one."""

from __future__ import annotations

import asyncio

from rota.engine.rest import Rest
from tests.support.wait import PATIENCE

LONG, SHORT = 3_600.0, 0.001


async def taken(rest: Rest, seconds: float) -> asyncio.Task[None]:
    """Return the task of a rest that has begun."""
    task = asyncio.create_task(rest.take(seconds))
    await asyncio.sleep(0)
    return task


async def test_it_ends_after_its_time() -> None:
    async with asyncio.timeout(PATIENCE):
        await Rest().take(SHORT)
        await Rest().take(0)


async def test_a_wake_ends_it_however_long_it_is_held() -> None:
    rest = Rest()
    task = await taken(rest, 1.0)
    assert rest.hold(LONG, 1.0)
    assert rest.is_held
    rest.wake()
    async with asyncio.timeout(PATIENCE):
        await task
    assert not rest.is_held


async def test_a_hold_outlasts_what_the_loop_wanted() -> None:
    rest = Rest()
    task = await taken(rest, SHORT)
    assert rest.hold(LONG, SHORT)
    await asyncio.wait([task], timeout=20 * SHORT)
    assert not task.done()
    rest.release()
    async with asyncio.timeout(PATIENCE):
        await task


async def test_a_shorter_hold_replaces_a_longer_one() -> None:
    rest = Rest()
    task = await taken(rest, SHORT)
    assert rest.hold(LONG, SHORT)
    assert rest.hold(SHORT, SHORT)
    async with asyncio.timeout(PATIENCE):
        await task


async def test_who_steps_or_will_soon_is_not_held() -> None:
    rest = Rest()
    assert not rest.hold(LONG, 1.0), "it steps"
    task = await taken(rest, 0.5)
    assert not rest.hold(LONG, 1.0), "it knows what is due in half a second"
    rest.wake()
    assert not rest.hold(LONG, 0.1), "it was woken"
    async with asyncio.timeout(PATIENCE):
        await task


async def test_a_wake_during_a_step_ends_the_next_rest() -> None:
    rest = Rest()
    rest.wake()
    async with asyncio.timeout(PATIENCE):
        await rest.take(LONG)


async def test_a_hint_that_may_concern_anybody_is_left_to_the_look_while_held() -> None:
    rest = Rest()
    task = await taken(rest, 1.0)
    turns = rest.turns
    rest.hold(LONG, 1.0)
    rest.hint()
    assert rest.turns == turns
    rest.release()
    rest.hint()
    assert rest.turns > turns
    await task


async def test_a_rest_is_shortened() -> None:
    rest = Rest()
    task = await taken(rest, LONG)
    rest.shorten(SHORT)
    async with asyncio.timeout(PATIENCE):
        await task


async def test_many_that_stir_it_make_one_step_soon() -> None:
    rest = Rest()
    task = await taken(rest, LONG)
    rest.stir(SHORT)
    rest.stir(LONG)
    assert not task.done(), "not at once"
    assert not rest.hold(LONG, 1.0), "it steps soon"
    async with asyncio.timeout(PATIENCE):
        await task


async def test_what_stirs_it_during_a_step_shortens_the_next_rest_only() -> None:
    rest = Rest()
    rest.stir(SHORT)
    async with asyncio.timeout(PATIENCE):
        await rest.take(LONG)
    task = await taken(rest, LONG)
    assert not task.done()
    rest.wake()
    await task


async def test_who_is_held_is_woken_at_once() -> None:
    rest = Rest()
    task = await taken(rest, 1.0)
    rest.hold(LONG, 1.0)
    rest.stir(LONG)
    async with asyncio.timeout(PATIENCE):
        await task


async def test_releasing_who_is_not_held_wakes_nobody() -> None:
    rest = Rest()
    turns = rest.turns
    rest.release()
    assert rest.turns == turns
