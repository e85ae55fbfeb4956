"""The gatherer: nobody waits for ever, and nobody pays for another's mistake."""

import asyncio
from collections.abc import Sequence

import pytest

from rota.errors import Invalid, Unavailable
from rota.store.databases.batcher import Batcher
from tests.support.wait import PATIENCE


async def test_an_item_that_comes_as_the_last_sender_ends_is_sent() -> None:
    gates: list[asyncio.Event] = []

    async def send(items: Sequence[int]) -> list[int]:
        gate = asyncio.Event()
        gates.append(gate)
        await gate.wait()
        return list(items)

    gatherer = Batcher(send)

    async def twice(item: int) -> int:
        await gatherer.add(item)
        return await gatherer.add(item + 10)

    callers = [asyncio.create_task(twice(item)) for item in (1, 2)]
    for _ in range(5):
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        while not all(caller.done() for caller in callers):
            for gate in gates:
                gate.set()
            await asyncio.sleep(0)
    assert [caller.result() for caller in callers] == [11, 12]


async def test_one_that_is_refused_is_refused_alone() -> None:
    async def send(items: Sequence[str]) -> list[str]:
        await asyncio.sleep(0)
        if "bad" in items:
            raise Invalid("bad")
        return [item.upper() for item in items]

    gatherer = Batcher(send)
    answers = await asyncio.gather(
        *(gatherer.add(item) for item in ("a", "b", "bad", "c", "bad", "d")), return_exceptions=True
    )
    assert [answer if isinstance(answer, str) else type(answer) for answer in answers] == [
        *("A", "B", Invalid, "C", Invalid, "D")
    ]


async def test_when_the_database_is_away_all_are_told() -> None:
    async def send(items: Sequence[str]) -> list[str]:
        raise Unavailable("away")

    gatherer = Batcher(send)
    with pytest.raises(Unavailable):
        await gatherer.add("a")
    with pytest.raises(Unavailable):
        await gatherer.add("b")
