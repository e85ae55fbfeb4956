"""A process that enqueues and cancels over HTTP or over a client of its own, and writes down every answer.

`python -m tests.chaos.producer NAME SEED FILE REST [SERVER …]`: without servers it uses the database. What it asked is
in its file before it asks, so that whoever is started in its place asks again for what was never answered.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec

from rota import Client, Order, Unavailable
from rota.errors import RotaError, RunIsFinal, UnknownRun
from rota.remote import RemoteClient
from tests.chaos import append_log, workload
from tests.chaos.jobs import app

T = TypeVar("T")

STREAMS = 4
_AGAIN = 0.03
"""How often something is asked once more that was answered: the answer must be the same."""
_KNOWN = 40
_REST = 0.2


class Asked(msgspec.Struct, frozen=True, tag=True):
    key: str
    job: str
    arguments: dict[str, Any]
    options: dict[str, Any]
    at: float


class Told(msgspec.Struct, frozen=True, tag=True):
    key: str
    run_id: str
    created: bool
    at: float


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Nothing that is asked here is to be refused."""

    key: str
    why: str
    at: float


class Cancelled(msgspec.Struct, frozen=True, tag=True):
    """`state` is what the answer said; that it was over already, if it is empty."""

    run_id: str
    state: str
    at: float


Line = Asked | Told | Refused | Cancelled


class Producer:
    def __init__(self, name: str, seed: str, path: Path, rest: float, doors: Doors) -> None:
        before: list[Line] = append_log.read(path, Line)  # type: ignore[arg-type]
        asked = {line.key: line for line in before if isinstance(line, Asked)}
        told = {line.key: line for line in before if isinstance(line, Told)}
        over = {line.key for line in before if isinstance(line, Told | Refused)}
        stopped = {line.run_id for line in before if isinstance(line, Cancelled)}
        endless = {told[key].run_id for key in told if asked[key].job == "endless"}
        self.stopping = False
        self._name, self._path, self._rest, self._doors = name, path, rest, doors
        self._number = len(asked)
        self._chance = Random(f"{seed} {name} {self._number}")
        self._unanswered = [line for key, line in asked.items() if key not in over]
        self._to_cancel = sorted(endless - stopped)
        self._known = [line.run_id for line in told.values()][-_KNOWN:]

    async def produce(self) -> None:
        async with asyncio.TaskGroup() as group:
            for line in self._unanswered:
                group.create_task(self._order(line, group))
            for run_id in self._to_cancel:
                group.create_task(self._cancel(run_id))
            for _ in range(STREAMS):
                group.create_task(self._stream(group))

    async def _stream(self, group: asyncio.TaskGroup) -> None:
        while not self.stopping:
            self._number += 1
            key = f"{self._name}-{self._number}"
            job, arguments, options = workload.draw(self._chance, key, self._known)
            line = Asked(key, job, arguments, options, time.monotonic())
            self._write(line)
            await self._order(line, group)
            if self._chance.random() < _AGAIN:
                await self._enqueue(line)
            await asyncio.sleep(self._chance.uniform(0, 2 * self._rest))

    async def _order(self, line: Asked, group: asyncio.TaskGroup) -> None:
        run_id = await self._enqueue(line)
        if run_id is not None and line.job == "endless":
            group.create_task(self._cancel(run_id, self._chance.uniform(0.2, 3.0)))

    async def _enqueue(self, line: Asked) -> str | None:
        order = Order(line.job, line.arguments, line.options)
        try:
            done = await self._until_answered(lambda client: client.enqueue(order))
        except RotaError as error:
            self._write(Refused(line.key, f"{type(error).__name__}: {error}", time.monotonic()))
            return None
        self._write(Told(line.key, done.id, done.created, time.monotonic()))
        self._known = [*self._known[1 - _KNOWN :], done.id]
        return done.id

    async def _cancel(self, run_id: str, after: float = 0.0) -> None:
        await asyncio.sleep(after)
        try:
            state = str(await self._until_answered(lambda client: client.cancel(run_id, actor=self._name)))
        except (RunIsFinal, UnknownRun):  # a failover may have lost it; whether it may, the judge decides
            state = ""
        self._write(Cancelled(run_id, state, time.monotonic()))

    async def _until_answered(self, what: Callable[[Client | RemoteClient], Awaitable[T]]) -> T:
        while True:
            try:
                return await what(await self._doors.next())
            except Unavailable:
                await asyncio.sleep(_REST)

    def _write(self, line: Line) -> None:
        append_log.append(self._path, line)


class Doors:
    """Each call goes to the next server; without any, to the database."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._remotes = [RemoteClient(url, timeout="3s") for url in servers]
        self._turn = 0

    async def next(self) -> Client | RemoteClient:
        self._turn += 1
        return self._remotes[self._turn % len(self._remotes)] if self._remotes else await app.connect()

    async def close(self) -> None:
        for remote in self._remotes:
            await remote.close()


async def main(name: str, seed: str, path: str, rest: str, *servers: str) -> None:
    doors = Doors(servers)
    producer = Producer(name, seed, Path(path), float(rest), doors)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: setattr(producer, "stopping", True))
    print("produces", flush=True)
    await producer.produce()
    await doors.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
