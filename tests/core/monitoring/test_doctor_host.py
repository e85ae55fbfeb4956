"""Checks of an installation's environment: when they warn, and the hints."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from rota.core.ledger.database_state import DatabaseStanding
from rota.core.monitoring.doctor import OK, PROBLEM, WARNING, Check
from rota.core.monitoring.doctor_host import (
    GIB,
    MANY_DEAD,
    MIB,
    DeadRows,
    Durability,
    FileFacts,
    FileUser,
    FileUsers,
    HeartbeatSettings,
    ServerFacts,
    Transaction,
    Versions,
    check_epoch,
    check_file,
    check_server,
    check_settings,
    check_users,
    check_versions,
    check_workers,
    size,
)
from rota.core.workers.worker import Worker, WorkerState

NOW = datetime(2026, 11, 16, tzinfo=UTC)
OURS = Versions(rota="1.2", python="3.13.1", sqlite="3.54.1", zones="2026b", planned_with="2026b")
SERVER = ServerFacts(version="18.1", major=18, size=5 * MIB, autovacuum=True)
PULSE = HeartbeatSettings(lease=timedelta(seconds=30), heartbeat=timedelta(seconds=10), deadline=timedelta(seconds=15))
WORKER = Worker(
    id="web@aa11", name="web", host="here", pid=1, version="1.2", state=WorkerState.WORKING, queues={"default": 1},
    jobs=(), slots=10, held=0, runs=(), started_at=NOW, seen_at=NOW - timedelta(minutes=5),
    heartbeat=timedelta(seconds=10), poll=None, asked=None, asked_by=None,
)  # fmt: skip


def changed(value: Any, **facts: Any) -> Any:
    return msgspec.structs.replace(value, **facts)


def judged(check: Check, level: str, words: str) -> None:
    assert check.level == level
    assert words in check.words
    assert (check.hint is None) == (level == OK)


@pytest.mark.parametrize(
    ("room", "size", "wal", "level"),
    [
        (50 * GIB, MIB, 0, OK),
        (513 * MIB, MIB, 60 * MIB, OK),
        (511 * MIB, MIB, 0, WARNING),
        (63 * MIB, MIB, 0, PROBLEM),
        (50 * GIB, MIB, 129 * MIB, WARNING),
        (50 * GIB, GIB, 129 * MIB, OK),
    ],
)
def test_the_disk_of_a_file(room: int, size: int, wal: int, level: str) -> None:
    judged(check_file(FileFacts(size, wal, room)), level, "in its WAL")


@pytest.mark.parametrize(
    ("facts", "level", "words"),
    [
        ({}, OK, "nothing blocks it"),
        ({"autovacuum": False}, PROBLEM, "off for the server"),
        ({"unvacuumed": ["rota_run"]}, PROBLEM, "off for rota_run"),
        ({"oldest": Transaction(7, "psql", "idle in transaction", timedelta(minutes=11))}, WARNING, "open for 11m"),
        ({"oldest": Transaction(7, "psql", "active", timedelta(minutes=9))}, OK, ""),
        ({"dead": [DeadRows("rota_ready", 5, MANY_DEAD + 1)]}, WARNING, "rota_ready has 100001 dead rows"),
        ({"dead": [DeadRows("rota_ready", MANY_DEAD, MANY_DEAD + 1)]}, OK, ""),
        ({"dead": [DeadRows("rota_ready", 5, MANY_DEAD - 1)]}, OK, ""),
    ],
)
def test_what_keeps_postgres_clean(facts: dict[str, Any], level: str, words: str) -> None:
    disk, durability, vacuum = check_server(changed(SERVER, **facts))
    judged(durability, OK, "survives a crash")
    judged(disk, OK, "5 MB")
    judged(vacuum, level, words)


@pytest.mark.parametrize(
    ("server", "level", "words"),
    [
        (Durability(), OK, ""),
        (Durability(fsync="off"), WARNING, "fsync of the server is off"),
        (Durability(fsync="off", full_page_writes="off"), WARNING, "fsync and full_page_writes of the server are off"),
        (Durability(synchronous_commit="off"), WARNING, "synchronous_commit is off"),
        (Durability(synchronous_commit="local"), OK, ""),
        (Durability(synchronous_commit="local", synchronous=1), WARNING, "synchronous_commit is local"),
        (Durability(asynchronous=2), WARNING, "2 standbys, none synchronous"),
        (Durability(asynchronous=1, synchronous=1), OK, ""),
    ],
)
def test_whether_a_crash_or_a_failover_loses_anything(server: Durability, level: str, words: str) -> None:
    _, durability, _ = check_server(changed(SERVER, durability=server))
    judged(durability, level, words)


@pytest.mark.parametrize(
    ("epoch", "age", "level", "words"),
    [
        (0, timedelta(0), OK, "no failover and no restore so far"),
        (2, timedelta(days=1), WARNING, "epoch 2 began 1d ago"),
        (2, timedelta(days=8), OK, "epoch 2 began 8d ago"),
    ],
)
def test_a_failover_is_news_for_a_week(epoch: int, age: timedelta, level: str, words: str) -> None:
    judged(check_epoch(DatabaseStanding("postgres", epoch, held=False, since=NOW - age), NOW), level, words)
    judged(check_epoch(DatabaseStanding("postgres", 0, held=False), NOW), WARNING, "not recorded")


def test_a_copy_that_nobody_has_accepted_is_a_problem() -> None:
    held = DatabaseStanding("postgres", 2, held=True, since=NOW - timedelta(days=30))
    judged(check_epoch(held, NOW), PROBLEM, "is a copy")


@pytest.mark.parametrize(
    ("version", "level"), [("3.54.1", OK), ("3.51.3", OK), ("3.51.2", PROBLEM), ("3.40.1", PROBLEM), ("3.7.0", PROBLEM)]
)
def test_the_library_that_may_lose_work(version: str, level: str) -> None:
    library, *_ = check_versions(changed(OURS, sqlite=version), [], None, NOW)
    judged(library, level, version)


@pytest.mark.parametrize(
    ("major", "level"), [(19, OK), (18, OK), (15, OK), (14, OK), (13, WARNING), (12, WARNING), (11, PROBLEM)]
)
def test_the_release_of_postgres(major: int, level: str) -> None:
    server, *_ = check_versions(OURS, [], changed(SERVER, major=major, version=f"{major}.1"), NOW)
    judged(server, level, f"PostgreSQL {major}.1")
    server, *_ = check_versions(OURS, [], changed(SERVER, major=14), datetime(2026, 12, 1, tzinfo=UTC))
    assert server.level == WARNING


def test_workers_of_another_version() -> None:
    other = changed(WORKER, version="1.1")
    _, programs, _ = check_versions(OURS, [WORKER, other, other], None, NOW)
    judged(programs, WARNING, "1.1 (2 workers)")
    for workers in ([], [WORKER], [changed(other, state=WorkerState.GONE)]):
        _, programs, _ = check_versions(OURS, workers, None, NOW)
        judged(programs, OK, "rota 1.2, Python 3.13.1")


@pytest.mark.parametrize(("planned_with", "level"), [(None, OK), ("2026a", OK), ("2026b", OK), ("2027a", WARNING)])
def test_newer_zone_data_elsewhere(planned_with: str | None, level: str) -> None:
    *_, zones = check_versions(changed(OURS, planned_with=planned_with), [], None, NOW)
    judged(zones, level, "2026b")


def test_workers_that_are_gone() -> None:
    judged(check_workers([], NOW), OK, "no worker is alive")
    judged(check_workers([WORKER], NOW), OK, "1 worker is alive")
    judged(check_workers([WORKER, changed(WORKER, state=WorkerState.GONE)], NOW), WARNING, "web@aa11 for 5m")


def test_settings_that_do_not_go_together() -> None:
    judged(check_settings(PULSE, [WORKER, changed(WORKER, heartbeat=None)]), OK, "lease 30s, heartbeat 10s")
    rare = changed(WORKER, heartbeat=timedelta(seconds=11))
    judged(check_settings(PULSE, [rare]), WARNING, "web@aa11 (11s)")
    judged(check_settings(changed(PULSE, deadline=timedelta(seconds=30)), []), WARNING, "may take 30s")


def test_sizes() -> None:
    told = [size(count) for count in (0, 1023, 1024, 504 * 1024, 12 * MIB, 3 * GIB // 2, 2000 * GIB)]
    assert told == ["0 bytes", "1023 bytes", "1 kB", "504 kB", "12 MB", "1.5 GB", "2000 GB"]


RUNNING = FileUser(7, "rota", 3, 0)
IMPORTED = FileUser(8, "rota", 2, 0, ("libsqlite3.so.0",))
OWN_APSW = FileUser(9, "shop", 2, 1)
MIXED = FileUser(10, "shop", 2, 1, ("libsqlite3.so.0",))
READER = FileUser(11, "sqlite3", 0, 1, ("libsqlite3.so.0",))


@pytest.mark.parametrize(
    ("users", "hidden", "level", "words"),
    [
        ((RUNNING,), 0, "ok", "1 process of rota has the file open"),
        ((RUNNING, IMPORTED, OWN_APSW), 0, "ok", "3 processes of rota have the file open"),
        ((RUNNING, READER), 0, "ok", "1 process of rota has the file open; also open in sqlite3 (pid 11)"),
        ((RUNNING,), 2, "ok", "; 2 more cannot be looked at: they belong to other users"),
        ((RUNNING, MIXED, READER), 0, "warning", "in a process of rota's: shop (pid 10) by libsqlite3.so.0"),
    ],
)
def test_who_has_the_file_open(users: tuple[FileUser, ...], hidden: int, level: str, words: str) -> None:
    check = check_users(FileUsers(users, hidden))
    assert check.level == level
    assert words in check.words
    assert (check.hint is None) == (level == "ok")
