"""`rota doctor`: a line for each problem, and the exit code."""

import asyncio
import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
from click.testing import CliRunner, Result

from rota.cli import root
from rota.cli.connect import without_password
from rota.core.alerts.notifications import WEBHOOK
from rota.core.alerts.signals import Signal
from rota.core.calendar.triggers import every
from rota.core.states import Outcome
from rota.core.workers.worker import Pace
from rota.store import Store, open_database
from rota.store.databases.database import Tx
from rota.store.databases.sqlite.sqlite import SqliteDatabase
from rota.store.monitoring.doctor import file_vitals, server_vitals
from rota.values.clock import HostClock
from tests.support.clock import ManualClock
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, put, tell
from tests.support.schedules.schedules import make_schedule, minutes, plan


def past() -> ManualClock:
    """Set the clock an hour back, so that what happens is old afterwards."""
    clock = ManualClock()
    clock.advance(timedelta(microseconds=HostClock().micros() - clock.micros()) - timedelta(hours=1))
    return clock


def prepared(url: str, work: Callable[[Store, ManualClock], Awaitable[None]]) -> None:
    async def body() -> None:
        clock = past()
        store = Store(open_database(url, clock))
        await store.migrate()
        await work(store, clock)
        await store.close()

    asyncio.run(body())


def doctor(url: str, *options: str) -> Result:
    return CliRunner().invoke(root, ["doctor", "--database", url, *options])


def lines(url: str, *options: str) -> tuple[int, dict[str, tuple[str, str]]]:
    done = doctor(url, "--json", *options)
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["healthy"] == (done.exit_code == 0)
    return done.exit_code, {check["name"]: (check["level"], check["words"]) for check in told["checks"]}


async def nothing(_store: Store, _clock: ManualClock) -> None: ...


def test_a_healthy_installation(database_url: str) -> None:
    prepared(database_url, nothing)
    code, found = lines(database_url)
    assert code == 0
    kind = "postgres" if database_url.startswith("postgres") else "sqlite"
    server = ["durability", "vacuum"] if kind == "postgres" else ["sharing"]
    if kind == "postgres":
        assert "fsync" in found["durability"][1]  # off, as it is a test
    assert {level for name, (level, _) in found.items() if name != "durability"} == {"ok"}
    assert found["queues"][1] == "no run waits for a worker"
    assert list(found) == [
        "database", kind, "versions", "zones", "disk", *server, "epoch", "clock", "settings", "hints", "workers",
        "schedules", "leases", "queues", "jobs", "paused", "live_limits", "signals", "waits", "limits", "skipped",
        "cadences", "attention", "expected", "ledger",
    ]  # fmt: skip
    where = without_password(database_url)
    assert doctor(database_url).stdout.startswith(f"ok\tdatabase\t{where} answers, at schema ")


def test_what_is_wrong_is_told(database_url: str) -> None:
    async def trouble(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "late", scopes="shops")
        await put(store)
        await claim(store)
        await put(store, queue="mail")

    prepared(database_url, trouble)
    code, found = lines(database_url)
    assert code == 1
    assert found["schedules"][0] == "problem"
    assert "scope provider 'shops'" in found["schedules"][1]
    assert found["leases"][0] == "problem"
    assert WORKER.id in found["leases"][1]
    assert found["queues"] == ("problem", "no live worker takes from: mail (1 run)")
    assert found["jobs"] == ("problem", "no live worker knows: work (1 run)")
    assert found["ledger"][0] == "ok"


def test_a_pause_that_was_forgotten_is_told(database_url: str) -> None:
    async def pause(store: Store, clock: ManualClock) -> None:
        await put(store, queue="mail")
        await store.pause_queue("mail", "the relay is down", "ada")
        await store.pause_queue("empty", None, "ada")

    prepared(database_url, pause)
    _, found = lines(database_url)
    assert found["paused"] == ("warning", "queue mail is paused by ada (the relay is down), and 1 run waits")


def test_a_damaged_ledger_is_told(database_url: str) -> None:
    async def damage(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, overlap="allow")
        for _ in range(3):
            clock.advance(minutes(1))
            await plan(store)

        async def body(tx: Tx) -> None:
            await tx.fetch_sql("delete from rota_run where plan_time = (select min(plan_time) from rota_run)")

        await store.database.transact(body)

    prepared(database_url, damage)
    for options in ((), ("--schedule", "s"), ("--all",)):
        code, found = lines(database_url, *options)
        assert code == 1
        told = doctor(database_url, *options).stdout
        assert "problem\tledger\tschedule 's': revision 1: 3 plan times for global/global, but 2 are" in told
        assert found["ledger"][0] == "ok"  # the last line, which says how much was looked at


def test_one_schedule_by_name(database_url: str) -> None:
    prepared(database_url, nothing)
    assert doctor(database_url, "--schedule", "nobody").exit_code == 4


def test_a_database_that_is_not_there_or_not_migrated(tmp_path: Path, new_postgres_url: str) -> None:
    code, found = lines(f"sqlite:///{tmp_path / 'nothing.db'}")
    assert code == 1
    assert found["database"][0] == "problem"
    code, found = lines(new_postgres_url)
    assert code == 1
    assert "schema 0" in found["database"][1]
    assert doctor("mysql://x").exit_code == 78


def test_many_schedules_are_verified_in_part(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def three(store: Store, _clock: ManualClock) -> None:
        for name in ("a", "b", "c"):
            await make_schedule(store, name, enabled=False)
        await store.extend(WORKER, [], LEASE_MICROS)

    monkeypatch.setattr(
        sys.modules["rota.cli.admin.doctor"], "_MOST_VERIFIED", 2
    )  # the package has the command by its name
    prepared(sqlite_url, three)
    code, found = lines(sqlite_url)
    assert code == 0
    assert found["ledger"][0] == "warning"
    assert "1 more were not checked" in found["ledger"][1]
    assert lines(sqlite_url, "--all")[1]["ledger"][0] == "ok"


def test_a_cadence_that_is_shorter_than_a_grace_or_a_backoff(database_url: str) -> None:
    async def hasty(store: Store, _clock: ManualClock) -> None:
        await make_schedule(store, "hasty", every("2s"), overlap="cancel_previous")
        await make_schedule(store, "failing", every("2s"), backoff="30s")
        await make_schedule(store, "calm", every("1h"), backoff="30s", overlap="cancel_previous")

    prepared(database_url, hasty)
    level, words = lines(database_url)[1]["cadences"]
    assert level == "warning"
    assert "hasty: plan times are 2s apart, and a run that is cancelled may take its cancel_grace of 30s" in words
    assert "failing: plan times are 2s apart, and a failed run waits 30s for its retry" in words
    assert "calm" not in words


def test_runs_that_have_begun_and_are_called_skipped(database_url: str) -> None:
    """Skip runs that had started, as an older version of rota did."""
    ended = []

    async def work(store: Store, _clock: ManualClock) -> None:
        ended.append(await put(store))
        (held,) = await claim(store)
        assert await tell(store, held, Outcome.FAILED, retry_in=60_000_000)

        async def as_before(tx: Tx) -> None:
            await tx.fetch("drop_ready", id=ended[0])
            values = {"attempt": 1, "fence": 1, "error": None, "reason": "superseded", "actor": "policy:limit"}
            await tx.fetch("end_unclaimed", id=ended[0], state="skipped", **values)

        await store.database.transact(as_before)

    prepared(database_url, work)
    _, found = lines(database_url)
    assert found["skipped"] == ("warning", f"1 run is marked as skipped, but has attempts: {ended[0]}")


def test_signals_that_nobody_takes_up(database_url: str) -> None:
    async def signalled(store: Store, _clock: ManualClock) -> None:
        await store.signals.add(Signal(0, 0, "late", "job", "work", "work"))

    prepared(database_url, signalled)
    code, found = lines(database_url)
    assert code != 0
    assert found["signals"] == ("problem", "1 signal waits for longer than a minute: notifications are not sent")


def test_notifications_that_nobody_sends(database_url: str) -> None:
    async def enqueued(store: Store, _clock: ManualClock) -> None:
        await put(store, WEBHOOK)

    prepared(database_url, enqueued)
    code, found = lines(database_url)
    assert code != 0
    assert found["queues"] == ("problem", "no live worker takes from: rota (1 run)")


def test_what_surrounds_it_is_told(database_url: str) -> None:
    async def trouble(store: Store, _clock: ManualClock) -> None:
        await make_schedule(store, "zoned")
        slow = Pace(heartbeat=timedelta(minutes=1), poll=timedelta(seconds=1), lease=timedelta(hours=3))
        await store.extend(msgspec.structs.replace(WORKER, version="0.0.1", pace=slow), [], LEASE_MICROS)
        await store.extend(msgspec.structs.replace(WORKER, id="killed@1"), [], LEASE_MICROS)

        async def body(tx: Tx) -> None:
            await tx.fetch_sql("update rota_cursor set tzdata = '2999z'")

        await store.database.transact(body)

    prepared(database_url, trouble)
    _, found = lines(database_url)
    assert {name for name, (level, _) in found.items() if level == "warning"} - {"durability"} == {
        "versions", "zones", "settings", "workers", "worker_gone",
    }  # fmt: skip
    assert "0.0.1 (1 worker)" in found["versions"][1]
    assert "2999z" in found["zones"][1]
    assert f"{WORKER.id} (1m)" in found["settings"][1]
    assert "killed@1 for 1h" in found["workers"][1]


async def test_a_file_is_measured_with_its_wal(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    path.write_bytes(b"1" * 100)
    database = SqliteDatabase(str(path))
    assert (await file_vitals(database)).wal == 0
    path.with_name("some.db-wal").write_bytes(b"2" * 300)
    found = await file_vitals(database)
    assert (found.size, found.wal) == (100, 300)
    assert found.room > 0


def test_a_full_disk_is_told(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(sqlite_url, nothing)
    code, found = lines(sqlite_url)
    assert (code, found["disk"][0]) == (0, "ok")
    monkeypatch.setattr("shutil.disk_usage", lambda _path: shutil._ntuple_diskusage(10, 10, 1 << 20))
    code, found = lines(sqlite_url)
    assert (code, found["disk"][0]) == (1, "problem")
    assert "1 MB of disk space free" in found["disk"][1]


async def test_a_schema_may_have_any_name(new_postgres_url: str) -> None:
    connection = await asyncpg.connect(new_postgres_url)
    await connection.execute('create schema "Jobs of ours"')
    name = new_postgres_url.rpartition("/")[2]
    await connection.execute(f'alter database "{name}" set search_path to "Jobs of ours"')
    await connection.close()
    store = Store(open_database(new_postgres_url))
    await store.migrate()
    await store.database.transact(lambda tx: tx.script("alter table rota_run set (autovacuum_enabled = false)"))
    found = await server_vitals(store.database)
    await store.close()
    assert found.unvacuumed == ["rota_run"]


async def test_what_keeps_postgres_from_cleaning_up_is_told(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(prepared, postgres_url, nothing)
    monkeypatch.setattr("rota.core.monitoring.doctor_host.OLD_TRANSACTION", timedelta(0))
    connection = await asyncpg.connect(postgres_url, server_settings={"application_name": "a forgotten script"})
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("select pg_current_xact_id()")
    code, found = await asyncio.to_thread(lines, postgres_url)
    assert (code, found["vacuum"][0]) == (0, "warning")
    assert "a forgotten script (idle in transaction)" in found["vacuum"][1]
    await transaction.rollback()
    await connection.execute("alter table rota_lease set (autovacuum_enabled = off)")
    await connection.close()
    code, found = await asyncio.to_thread(lines, postgres_url)
    assert (code, found["vacuum"]) == (1, ("problem", "autovacuum is off for rota_lease"))
