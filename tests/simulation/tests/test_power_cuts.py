"""The power is cut at every sync of a whole life, before it and after it: nothing that was answered is lost, nothing is
half there, and the rest of the life goes well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.errors import RotaError
from rota.store import Store, open_database
from rota.store.databases.sqlite import sqlite
from rota.store.databases.sqlite.sqlite import SqliteTx
from tests.simulation.disk.durability import (
    Commit,
    History,
    at_once,
    check_whole,
    live_to_the_end,
    lost_or_invented,
    rows,
    state_of_all,
)
from tests.simulation.disk.vfs import Disk, Fate, Image, Platters, around_syncs, put_back
from tests.simulation.disk.workload import Life, Told, whole
from tests.support.clock import ManualClock

FATES: tuple[Fate, ...] = ("nothing", "everything", 1, 2)
FILE = "rota.db"
# So that a short life meets many of them.
FREQUENT_CHECKPOINTS = 40


class Recording(msgspec.Struct, frozen=True):
    disk: Disk
    history: History
    told: list[Told]

    @property
    def moments(self) -> list[int]:
        """Around each sync, and when each answer was given: a store that does not sync has no others."""
        return sorted({*around_syncs(self.disk.log), *(commit.answered for commit in self.history.commits)})


class Tally(msgspec.Struct):
    """`kept` and `forgot`: images with and without what was under way when the power was cut."""

    cuts: int = 0
    images: int = 0
    kept: int = 0
    forgot: int = 0
    finished: int = 0


async def record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    monkeypatch.setattr(sqlite, "_LONG_LOG", FREQUENT_CHECKPOINTS)
    disk, clock = Disk(), ManualClock()
    history = History(disk.log, clock)
    life = Life(f"sqlite:///{folder / FILE}", clock, moment=lambda: len(disk.log))
    with disk.mounted(), history.kept(monkeypatch):
        await whole(life)
    return Recording(disk, history, life.told)


async def cut_everywhere(recording: Recording, folder: Path, fates: Iterable[Fate] = FATES) -> Tally:
    tally, seen = Tally(), set[object]()
    platters, applied = Platters(), 0
    for moment in recording.moments:
        platters.apply(recording.disk.log[applied:moment])
        applied = moment
        commits = recording.history.around(moment)
        known = recording.history.known(recording.told, moment)
        for fate in fates:
            tally.cuts += 1
            image = platters.after_power_cut(fate)
            # Often nothing is unsynced: then all fates are one.
            case = (fingerprint(image), commits[0].answered, len(known))
            if case not in seen:
                seen.add(case)
                put_back(image, place := folder / f"image-{len(seen)}")
                try:
                    await check_image(place, commits, known, tally)
                except AssertionError as error:
                    error.add_note(f"power cut at moment {moment}, kept of the unsynced: {fate}")
                    raise
    tally.images = len(seen)
    return tally


async def check_image(place: Path, commits: list[Commit], known: list[Told], tally: Tally) -> None:
    clock = ManualClock()
    clock.advance(timedelta(microseconds=commits[-1].now - clock.micros()))
    with Disk().mounted():  # its syncs cost nothing
        store = Store(open_database(f"sqlite:///{place / FILE}", clock))
        try:
            found = await store.database.transact(state_of_all)
            wrong = lost_or_invented(found, commits)
            assert wrong is None, wrong
            tally.kept += found != commits[0].state
            tally.forgot += found != commits[-1].state
            await store.migrate()
            await check_whole(store, known)
            tally.finished += await live_to_the_end(store, clock)
            await check_whole(store)
        finally:
            await store.close()


def fingerprint(image: Image) -> frozenset[tuple[str, bytes]]:
    return frozenset((name, hashlib.sha256(content).digest()) for name, content in image.items())


async def test_a_power_cut_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = await record(tmp_path, monkeypatch)
    tally = await cut_everywhere(recording, tmp_path)
    print(f"{recording.disk.syncs} syncs, {len(recording.history.commits)} commits: {tally}")
    assert recording.disk.syncs >= 120
    assert len(recording.history.commits) >= 100
    assert tally.cuts >= 2 * 120 * len(FATES)
    assert tally.images >= 350
    assert min(tally.kept, tally.forgot) >= 50, "of what was under way, the disk sometimes has all, sometimes nothing"
    assert tally.finished >= 5_000


Plant = Callable[[pytest.MonkeyPatch], None]


def synchronous(how: str) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        assert "synchronous = full" in sqlite._PRAGMAS
        monkeypatch.setattr(sqlite, "_PRAGMAS", sqlite._PRAGMAS.replace("synchronous = full", f"synchronous = {how}"))

    return plant


def writer(begin: str, commit: str) -> Plant:
    """One that answers before it commits."""

    def write_group(tx: SqliteTx, jobs: list[Any]) -> None:
        tx.control(begin)
        for job in jobs:
            try:
                job.future.set_result(at_once(job.work(tx)))
            except RotaError as error:
                job.future.set_exception(error)
        tx.control(commit)

    return lambda monkeypatch: monkeypatch.setattr(sqlite, "write_group", write_group)


@pytest.mark.parametrize(
    ("plant", "finding"),
    [
        pytest.param(synchronous("off"), "missing", id="never syncs"),
        pytest.param(synchronous("normal"), "missing", id="syncs at checkpoints only"),
        pytest.param(writer("begin immediate", "commit"), "missing", id="answers before it commits"),
        pytest.param(writer("", ""), "unexpected", id="commits each statement"),
    ],
)
async def test_a_planted_fault_is_found(
    plant: Plant, finding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as fault:
        plant(fault)
        recording = await record(tmp_path, fault)
    with pytest.raises(AssertionError, match=rf"{finding} \[\("):
        await cut_everywhere(recording, tmp_path)


DAMAGE = {
    "a run is nowhere": "delete from rota_ready where run_id = (select min(run_id) from rota_ready)",
    "a run is held and final": "update rota_run set state = 'succeeded' where id in (select run_id from rota_lease)",
    "a lease of no run": "update rota_lease set run_id = 'nobody' where run_id = (select min(run_id) from rota_lease)",
    "a success became a failure": "update rota_run set state = 'failed' where state = 'succeeded'",
    "a plan time without a run": "delete from rota_range",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
async def test_damage_is_found(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = await record(tmp_path, monkeypatch)
    known = recording.history.known(recording.told, len(recording.disk.log))
    store = Store(open_database(f"sqlite:///{tmp_path / FILE}", ManualClock()))
    try:
        await check_whole(store, known)
        await rows(store, damage)
        with pytest.raises(AssertionError):
            await check_whole(store, known)
    finally:
        await store.close()
