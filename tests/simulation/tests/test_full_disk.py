"""The disk is full at each write that lets a file grow: a clear error, nothing partial, and all is well with room."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from rota.core.states import Outcome
from rota.errors import Unavailable
from rota.store import Store, open_database
from tests.simulation.disk.durability import History, State, check_whole, live_to_the_end, state_of_all
from tests.simulation.disk.vfs import Disk
from tests.simulation.disk.workload import KNOWN, Life, short
from tests.support.clock import ManualClock
from tests.support.runs.runs import WORK, claim, finish, make, put

T = TypeVar("T")


class Hindered(Life):
    """The disk is full at the first growing write of each call; with room made, at the second, and so on."""

    def __init__(self, url: str, clock: ManualClock, disk: Disk, history: History) -> None:
        super().__init__(url, clock, moment=lambda: len(disk.log))
        self.failures = 0
        self._disk = disk
        self._history = history
        self._met: set[tuple[str, int]] = set()
        disk.fills_up = self._meets

    def _meets(self, name: str, offset: int) -> bool:
        is_new = (name, offset) not in self._met
        self._met.add((name, offset))
        return is_new

    async def do(self, act: Callable[[], Awaitable[T]]) -> T:
        self._met.clear()
        ids_given = self.new_id.given
        while True:
            self.new_id.given = ids_given
            try:
                return await act()
            except Unavailable as error:
                check_words(error)
            self.failures += 1
            await self._check_that_nothing_changed()
            self._disk.is_full = False

    async def _check_that_nothing_changed(self) -> None:
        if len(self._history.commits) > 1:  # else there may be no file yet that one could read
            # By the writer: by then it has noted the commit before, whose answer it gave first.
            assert await self.store.database.transact(state_of_all) == self._history.commits[-1].state


def check_words(error: Unavailable) -> None:
    assert re.search(r"the disk that holds .*rota\.db is full", str(error))


async def lived(folder: Path, monkeypatch: pytest.MonkeyPatch, *, hindered: bool) -> tuple[State, Disk, int]:
    """What it left, the disk, and how many of its calls failed."""
    url = f"sqlite:///{folder / 'rota.db'}"
    disk, clock = Disk(), ManualClock()
    history = History(disk.log, clock)
    life = Hindered(url, clock, disk, history) if hindered else Life(url, clock, moment=lambda: len(disk.log))
    with disk.mounted(), history.kept(monkeypatch):
        await short(life)
        disk.fills_up = lambda _name, _offset: False
        disk.is_full = False
        store = Store(open_database(url, clock))
        await check_whole(store, history.known(life.told, len(disk.log)))
        left = await store.database.read(state_of_all)
        await live_to_the_end(store, clock)
        await store.close()
    return left, disk, life.failures if isinstance(life, Hindered) else 0


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for folder in (easy := tmp_path / "easy", hard := tmp_path / "hard"):
        folder.mkdir()
    return easy, hard


async def test_a_disk_that_is_full_at_every_growing_write(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, _, _ = await lived(folders[0], monkeypatch, hindered=False)
    found, disk, failures = await lived(folders[1], monkeypatch, hindered=True)
    print(f"{disk.refusals} writes refused, {failures} calls failed")
    assert found == expected
    assert disk.refusals >= 200
    assert failures >= 200


async def test_a_disk_that_stays_full_can_be_read_and_goes_on_with_room(tmp_path: Path) -> None:
    disk, clock = Disk(), ManualClock()
    with disk.mounted():
        store = Store(open_database(f"sqlite:///{tmp_path / 'rota.db'}", clock))
        await store.migrate()
        await put(store)
        (held,) = await claim(store, known=KNOWN)
        before = await store.database.read(state_of_all)
        disk.is_full = True
        for _attempt in range(5):
            with pytest.raises(Unavailable, match="full"):
                await store.enqueue([make(WORK, payload={"text": "x" * 3_000}) for _ in range(50)])
            assert await store.database.read(state_of_all) == before
        disk.is_full = False
        await finish(store, held)
        await store.enqueue([make() for _ in range(50)])
        assert (await store.attempts(held.run_id))[-1].outcome is Outcome.SUCCEEDED
        await check_whole(store)
        assert await live_to_the_end(store, clock) == 50
        await store.close()
