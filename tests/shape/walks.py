"""Walks through the code: the files and functions of `src/rota` that one act visits, in the order of the first visit.

`python -m tests.shape.walks` prints both walks of ARCHITECTURE.md; `tests/shape/test_walks.py` holds how long they are.

A walk begins after the same act was done before, so that caches are filled and connections open. The database's driver
(`store/databases/sqlite`) is counted in `files` and left out of `without_driver`.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from rota import Rota
from rota.core.calendar.triggers import every
from rota.engine.loops.planner import Planner
from rota.store import open_store
from rota.values.clock import HostClock
from tests.support.clock import MINUTE, ManualClock
from tests.support.profile import Profile, Walk
from tests.support.runs.runs import claim, finish_all
from tests.support.schedules.schedules import make_schedule


class CountedClock(HostClock):
    """Manual clock that asks the host's clock, too: a walk visits it, but what is due does not depend on it."""

    def __init__(self) -> None:
        self.manual = ManualClock()

    def micros(self) -> int:
        super().micros()
        return self.manual.micros()

    def monotonic(self) -> float:
        super().monotonic()
        return self.manual.monotonic()


def enqueue_walk(folder: Path) -> Walk:
    """Walk from `job.enqueue(...)` to its commit: a plain run, on SQLite, from synchronous code."""
    with Profile() as profile:
        app = Rota(f"sqlite:///{folder / 'enqueue.db'}")

        @app.job
        def greet(name: str) -> None: ...

        try:
            greet.enqueue(name="Ada")
            greet.enqueue(name="Grace")
            with profile.walk() as walk:
                greet.enqueue(name="Barbara")
        finally:
            app.close()
    return walk


def planning_walk(folder: Path) -> Walk:
    """Walk through the step of a planner that fires one plain schedule, on SQLite."""

    async def planned(profile: Profile) -> Walk:
        clock = CountedClock()
        store = await open_store(f"sqlite:///{folder / 'planning.db'}", clock)
        try:
            planner = Planner(store, {}, timedelta(hours=1))
            await make_schedule(store, "each minute", every(MINUTE))
            for _ in range(3):
                await planner.step()
                await finish_all(store, await claim(store))
                clock.manual.advance(MINUTE)
            before = planner.runs
            with profile.walk() as walk:
                await planner.step()
            assert planner.runs == before + 1
        finally:
            await store.close()
        return walk

    with Profile() as profile:
        return asyncio.run(planned(profile))


WALKS: dict[str, Callable[[Path], Walk]] = {"enqueue": enqueue_walk, "planning": planning_walk}


def main() -> None:
    for name, walk_of in WALKS.items():
        with tempfile.TemporaryDirectory() as folder:
            walk = walk_of(Path(folder))
        print(
            f"{name}: {len(walk.files)} files, {len(walk.without_driver)} without the driver, "
            f"{len(walk.hops)} functions, {walk.calls} calls"
        )
        for number, file in enumerate(walk.files, 1):
            print(f"{number:4} {file}: {', '.join(walk.functions_in(file))}")


if __name__ == "__main__":
    main()
