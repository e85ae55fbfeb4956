"""`rota doctor`: what is wrong is a line and the exit code."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rota.cli import root
from rota.clock import HostClock
from rota.core.messages import Signal
from rota.core.notifications import WEBHOOK
from rota.store import Store, open_database
from rota.store.database import Tx
from tests.support.clock import ManualClock
from tests.support.runs import LEASE_MICROS, WORKER, claim, put
from tests.support.schedules import make_schedule, minutes, plan


def past() -> ManualClock:
    """An hour ago, so that what happens then is old now."""
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
    assert {level for level, _ in found.values()} == {"ok"}
    assert list(found) == [
        "database", "clock", "hints", "schedules", "leases", "queues", "jobs", "signals", "waits", "limits", "expected",
        "ledger",
    ]  # fmt: skip
    assert doctor(database_url).stdout.startswith("ok\tdatabase\t")


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
        assert "problem\tledger\tschedule 's': revision 1 named 3 plan times for global/global, and 2 are" in told
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

    monkeypatch.setattr(sys.modules["rota.cli.doctor"], "_MOST_VERIFIED", 2)  # the package has the command by its name
    prepared(sqlite_url, three)
    code, found = lines(sqlite_url)
    assert code == 0
    assert found["ledger"][0] == "warning"
    assert "1 more were not looked at" in found["ledger"][1]
    assert lines(sqlite_url, "--all")[1]["ledger"][0] == "ok"


def test_signals_that_nobody_takes_up(database_url: str) -> None:
    async def signalled(store: Store, _clock: ManualClock) -> None:
        await store.signals.add(Signal(0, 0, "late", "job", "work", "work"))

    prepared(database_url, signalled)
    code, found = lines(database_url)
    assert code != 0
    assert found["signals"] == ("problem", "1 signal waits for longer than a minute: nobody is told")


def test_notifications_that_nobody_sends(database_url: str) -> None:
    async def enqueued(store: Store, _clock: ManualClock) -> None:
        await put(store, WEBHOOK)

    prepared(database_url, enqueued)
    code, found = lines(database_url)
    assert code != 0
    assert found["queues"] == ("problem", "no live worker takes from: rota (1 run)")
