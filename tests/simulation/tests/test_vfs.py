"""The simulated disk itself: what it keeps when the power is cut, and when it is full."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.simulation.disk.vfs import (
    SECTOR,
    Act,
    Create,
    Delete,
    Disk,
    Platters,
    Sync,
    Truncate,
    Write,
    around_syncs,
    put_back,
    sectors_of,
)

SEEDS = range(200)
NEW: list[Act] = [Create("file"), Sync("file", syncs_folder=True)]


def after(*acts: Act) -> Platters:
    platters = Platters()
    platters.apply(acts)
    return platters


def possible(platters: Platters) -> set[bytes | None]:
    """The contents of `file` that power cuts leave; None: there is none."""
    return {platters.after_power_cut(seed).get("file") for seed in SEEDS}


def test_what_was_synced_stays() -> None:
    platters = after(*NEW, Write("file", 0, b"kept"), Sync("file", syncs_folder=False))
    assert possible(platters) == {b"kept"}


def test_what_was_not_synced_may_be_there_or_not() -> None:
    platters = after(*NEW, Write("file", 0, b"old"), Sync("file", syncs_folder=False), Write("file", 0, b"new"))
    assert possible(platters) == {b"old", b"new"}
    assert platters.after_power_cut("nothing") == {"file": b"old"}
    assert platters.after_power_cut("everything") == {"file": b"new"}


def test_a_sync_of_one_file_says_nothing_of_another() -> None:
    platters = after(*NEW, Create("other"), Write("file", 0, b"x"), Sync("other", syncs_folder=True))
    assert possible(platters) == {b"", b"x"}


def test_writes_arrive_in_any_order() -> None:
    platters = after(*NEW, Write("file", 0, b"1"), Write("file", 1, b"2"), Write("file", 0, b"3"))
    assert possible(platters) >= {b"", b"1", b"3", b"12", b"32", b"\0002"}


def test_a_write_is_torn_at_sectors() -> None:
    platters = after(*NEW, Write("file", 100, b"x" * 3 * SECTOR))
    contents = {content for content in possible(platters) if content is not None}
    pieces = [(100, SECTOR), (SECTOR, 2 * SECTOR), (2 * SECTOR, 3 * SECTOR), (3 * SECTOR, 3 * SECTOR + 100)]
    for content in contents:
        assert all(len(set(content[start:stop])) <= 1 for start, stop in pieces), "a sector is whole or not there"
    assert len(contents) == 2 ** len(pieces)


def test_sectors_put_together_are_the_write() -> None:
    for offset in (0, 1, SECTOR - 1, SECTOR, 1000):
        for size in (1, SECTOR - 1, SECTOR, SECTOR + 1, 5000):
            write = Write("file", offset, bytes(range(256)) * (size // 256 + 1))
            sectors = sectors_of(write)
            assert b"".join(sector.data for sector in sectors) == write.data
            assert all(
                sector.offset // SECTOR == (sector.offset + len(sector.data) - 1) // SECTOR for sector in sectors
            )


def test_a_truncation_is_a_change_like_others() -> None:
    begun: list[Act] = [*NEW, Write("file", 0, b"long"), Sync("file", syncs_folder=False), Truncate("file", 2)]
    assert possible(after(*begun)) == {b"long", b"lo"}
    assert possible(after(*begun, Sync("file", syncs_folder=False))) == {b"lo"}
    assert after(*begun, Truncate("file", 3)).after_power_cut("everything") == {"file": b"lo\0"}


def test_a_file_is_not_there_for_certain_before_its_folder_is_synced() -> None:
    begun: list[Act] = [Create("file"), Write("file", 0, b"x"), Sync("file", syncs_folder=False)]
    assert possible(after(*begun)) == {None, b"x"}
    assert possible(after(*begun, Create("journal"), Sync("journal", syncs_folder=True))) == {b"x"}


def test_a_deleted_file_may_come_back() -> None:
    begun: list[Act] = [*NEW, Write("file", 0, b"old"), Sync("file", syncs_folder=False)]
    assert possible(after(*begun, Delete("file", syncs_folder=False))) == {None, b"old"}
    assert possible(after(*begun, Delete("file", syncs_folder=True))) == {None}
    again: list[Act] = [Delete("file", syncs_folder=False), Create("file"), Write("file", 0, b"new")]
    assert possible(after(*begun, *again)) == {None, b"old", b"", b"new"}


def test_a_seed_gives_the_same_image_again() -> None:
    platters = after(*NEW, *[Write("file", n * 700, bytes([n]) * 900) for n in range(10)])
    images = [platters.after_power_cut(seed) for seed in SEEDS]
    assert [platters.after_power_cut(seed) for seed in SEEDS] == images
    assert len({image["file"] for image in images}) > 100


def test_moments_are_before_and_after_each_sync() -> None:
    assert around_syncs([*NEW, Write("file", 0, b"x"), Sync("file", syncs_folder=False)]) == [1, 2, 3, 4]


def opened(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal; pragma synchronous = full").fetchall()
    return connection


def test_sqlite_shares_its_log_on_it_and_leaves_it_again(tmp_path: Path) -> None:
    before, disk = apsw.vfs_names(), Disk()
    with disk.mounted():
        writer, reader = opened(tmp_path / "a.db"), opened(tmp_path / "a.db")
        writer.execute("create table t (n); insert into t values (1)")
        assert reader.execute("select n from t").get == 1
        assert {act.name for act in disk.log} == {"a.db", "a.db-journal", "a.db-wal"}
        acts = len(disk.log)
        writer.execute("insert into t values (2)")
        assert isinstance(disk.log[-1], Sync)
        assert disk.log[-1].name == "a.db-wal"
        assert len(disk.log) > acts + 1
        reader.close()
        writer.close()
    assert apsw.vfs_names() == before
    assert disk.syncs == len(around_syncs(disk.log)) // 2


def test_the_log_tells_the_very_files(tmp_path: Path) -> None:
    disk = Disk()
    with disk.mounted():
        connection = opened(tmp_path / "a.db")
        connection.execute("create table t (n); insert into t values (zeroblob(100000)); delete from t")
        image = after(*disk.log).after_power_cut("everything")
        assert image == {name: (tmp_path / name).read_bytes() for name in ("a.db", "a.db-wal")}
        connection.close()
        assert after(*disk.log).after_power_cut("everything") == {"a.db": (tmp_path / "a.db").read_bytes()}


def test_a_commit_is_found_after_a_power_cut(tmp_path: Path) -> None:
    disk = Disk()
    with disk.mounted():
        connection = opened(tmp_path / "a.db")
        connection.execute("create table t (n); insert into t values (1)")
        platters = after(*disk.log)
        connection.close()
    for seed in range(5):
        put_back(platters.after_power_cut(seed), tmp_path / f"image-{seed}")
        found = apsw.Connection(str(tmp_path / f"image-{seed}" / "a.db"))
        assert found.execute("select n from t").get == 1
        found.close()


def test_a_full_disk_takes_what_needs_no_room(tmp_path: Path) -> None:
    disk = Disk()
    with disk.mounted():
        connection = opened(tmp_path / "a.db")
        connection.execute(
            "create table t (n); insert into t values (zeroblob(100000)); pragma wal_checkpoint(restart)"
        )
        disk.is_full = True
        connection.execute("insert into t values (1)")  # the log begins anew, in the place that it has
        with pytest.raises(apsw.FullError):
            connection.execute("insert into t values (zeroblob(200000))")
        assert disk.refusals == 1
        assert connection.execute("select count(*) from t").get == 2
        disk.is_full = False
        connection.execute("insert into t values (zeroblob(200000))")
        assert connection.execute("select count(*) from t").get == 3
        assert connection.execute("pragma integrity_check").get == "ok"
        connection.close()


def test_a_disk_fills_up_when_it_is_told_to(tmp_path: Path) -> None:
    disk = Disk()
    disk.fills_up = lambda name, offset: name == "a.db-wal" and offset > 50_000
    with disk.mounted():
        connection = opened(tmp_path / "a.db")
        connection.execute("create table t (n); insert into t values (zeroblob(30000))")
        with pytest.raises(apsw.FullError):
            connection.execute("insert into t values (zeroblob(30000))")
        assert disk.is_full
        connection.close()
