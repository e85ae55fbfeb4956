"""The virtual event loop: time that jumps, processes that freeze and die, and a drawn order between them."""

import asyncio

import pytest

from tests.simulation.world.loop import Node, Stuck, VirtualLoop


def make(seed: int = 1) -> VirtualLoop:
    return VirtualLoop(seed)  # type: ignore[abstract]


def test_time_passes_only_when_nobody_has_anything_to_do() -> None:
    loop, seen = make(), []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((seconds, loop.time()))

    async def main() -> None:
        await asyncio.gather(sleeper(3_600), sleeper(1), sleeper(60))

    loop.run_until_complete(main())
    assert seen == [(1, 1.0), (60, 60.0), (3_600, 3_600.0)]


def test_the_dead_do_nothing_more_not_even_in_finally() -> None:
    loop, victim, seen = make(), Node("victim"), []

    async def doomed() -> None:
        try:
            await asyncio.sleep(2)
            seen.append("woke")
        finally:
            seen.append("finally")

    async def main() -> None:
        loop.spawn(victim, doomed())
        await asyncio.sleep(1)
        loop.kill(victim)
        await asyncio.sleep(5)

    loop.run_until_complete(main())
    assert seen == []


def test_the_frozen_go_on_where_they_were() -> None:
    loop, victim, seen = make(), Node("victim"), []

    async def sleeper() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            seen.append(loop.time())

    async def main() -> None:
        loop.spawn(victim, sleeper())
        await asyncio.sleep(1.5)
        victim.frozen = True
        await asyncio.sleep(8.5)
        victim.frozen = False
        await asyncio.sleep(10)

    loop.run_until_complete(main())
    assert seen == [1.0, 10.0, 11.0]


def order_of(seed: int) -> list[str]:
    loop, seen = make(seed), list[str]()

    async def speaker(name: str) -> None:
        for number in range(5):
            seen.append(f"{name}{number}")
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(*(loop.spawn(Node(name), speaker(name)) for name in "abc"))

    loop.run_until_complete(main())
    return seen


def test_a_node_keeps_its_order_and_the_order_between_nodes_is_drawn() -> None:
    orders = {tuple(order_of(seed)) for seed in range(20)}
    assert len(orders) > 10
    assert order_of(7) == order_of(7)
    for order in orders:
        for name in "abc":
            assert [word for word in order if word[0] == name] == [f"{name}{number}" for number in range(5)]


def test_whoever_waits_for_nothing_is_told() -> None:
    loop = make()

    async def main() -> None:
        await loop.create_future()

    with pytest.raises(Stuck, match="nothing is left to do"):
        loop.run_until_complete(main())
