"""`rota schedule occurrences|verify|backfill`, `rota explain` and their columns on a terminal."""

import asyncio
import contextlib
import os
import pty
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from rota.cli.schedules.schedule_format import soon_cell
from rota.core.calendar.triggers import once
from rota.store import Store, open_database
from rota.values.clock import HostClock
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.processes.command_line import answer, rota
from tests.support.schedules.schedules import MINUTE, get_schedule, make_schedule, minutes, plan


def on_terminal(*arguments: str, columns: int = 80) -> str:
    pid, terminal = pty.fork()
    if pid == 0:
        values = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}
        os.execve(sys.executable, [sys.executable, "-m", "rota", *arguments], values)
    shown = b""
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while part := os.read(terminal, 65536):
            shown += part
    os.close(terminal)
    os.waitpid(pid, 0)
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def an_hour_ago(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Store, ManualClock], Awaitable[None]]], None]:
    """Return a function that runs a callback against a store whose clock starts an hour ago."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)

    def prepare(work: Callable[[Store, ManualClock], Awaitable[None]]) -> None:
        async def body() -> None:
            clock = ManualClock()
            clock.advance(timedelta(microseconds=HostClock().micros() - clock.micros()) - timedelta(hours=1))
            store = Store(open_database(sqlite_url, clock))
            await store.migrate()
            await work(store, clock)
            await store.close()

        asyncio.run(body())

    return prepare


Prepare = Callable[[Callable[[Store, ManualClock], Awaitable[None]]], None]


def test_a_plan_time_of_many_scopes_is_not_cut_in_the_middle(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "pay", overlap="allow", scopes=[("tenant", f"{n:02}") for n in range(40)])
        for _ in range(2):
            clock.advance(minutes(1))
            await plan(store)

    an_hour_ago(work)
    ask = ("schedule", "occurrences", "pay")
    last = max(item["plan_time"] for item in answer(*ask, "--limit", "1000")["items"] if item["run_id"])
    for limit, count in (("4", 40), ("40", 40), ("41", 80)):
        each = [line.split("\t") for line in rota(*ask, "--to", last, "--limit", limit, "--each").stdout.splitlines()]
        assert len([line for line in each if line[4]]) == count
        assert {line[4] for line in each if line[4]} == {f"tenant/{n:02}" for n in range(40)}
    lines = [line.split("\t") for line in rota(*ask, "--to", last, "--limit", "50").stdout.splitlines()]
    assert [line[2:6] for line in lines] == [["ran", "40", "", "40 queued"]] * 2, "each in one line"
    assert len(rota(*ask, "--to", last, "--limit", "50", "--each").stdout.splitlines()) == 82


def test_the_newest_occurrences_are_shown(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "often", overlap="allow")
        for _ in range(40):
            clock.advance(minutes(1))
            await plan(store)

    an_hour_ago(work)
    end = datetime.now(UTC) - timedelta(minutes=21)
    span = ("--from", (end - timedelta(days=1)).isoformat(), "--to", end.isoformat())
    ask = ("schedule", "occurrences", "often")
    whole = rota(*ask, *span)
    assert (whole.stderr, len(whole.stdout.splitlines()) in (38, 39, 40)) == ("", True)
    for limit in (1, 5, 17, 37):
        newest = rota(*ask, *span, "--limit", str(limit))
        assert newest.stdout.splitlines() == whole.stdout.splitlines()[-limit:]
    page = answer(*ask, *span, "--limit", "30")
    rest = rota(*ask, *span, "--limit", "30", "--cursor", page["next_cursor"]).stdout
    assert rest.splitlines() == whole.stdout.splitlines()[30:]
    told = rota("schedule", "occurrences", "often", *span, "--limit", "5")
    assert "note: only the newest 5 are listed" in told.stderr
    assert [len(line.split("\t")) for line in told.stdout.splitlines()] == [8] * 5
    assert rota("schedule", "occurrences", "often", "--limit", "0").exit_code == 2


def test_what_was_coalesced_into_a_skipped_run_was_skipped(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "often")
        clock.advance(minutes(1))
        await plan(store)
        clock.advance(minutes(5))
        await plan(store)

    an_hour_ago(work)
    lines = [line.split("\t") for line in rota("schedule", "occurrences", "often").stdout.splitlines()]
    covered = next(line for line in lines if line[3] == "4")
    assert (covered[2], covered[5]) == ("skipped", "skipped")
    assert covered[7]
    assert {line[2] for line in lines[-3:]} <= {"ran", "skipped", "pending"}
    shown = on_terminal("schedule", "occurrences", "often", columns=140)
    assert {"to", "count"} <= set(shown.splitlines()[0].split())
    assert rota("schedule", "ls").stdout.split("\t")[4] == "queued"


def test_the_run_that_made_up_for_a_skipped_one_is_named(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "twice", max_runs=2)
        for _ in range(2):
            clock.advance(minutes(1))
            await plan(store)

    an_hour_ago(work)
    at = answer("schedule", "occurrences", "twice")["items"][-1]["plan_time"]
    span = ("--from", at, "--to", at)
    made = rota("schedule", "backfill", "twice", *span, "--ran", "failed", "--yes").stdout.strip()
    (line,) = rota("schedule", "occurrences", "twice", *span).stdout.splitlines()
    assert line.split("\t")[2] == "skipped"
    assert line.endswith(f" is not over; run {made}, created in its place, is queued")
    assert answer("schedule", "occurrences", "twice", *span)["items"][0]["again"] == {"run_id": made, "state": "queued"}
    assert f"Run {made}, which replaces it, is queued." in rota("explain", "twice").stdout


def test_the_newest_plan_time_is_explained_though_the_schedule_has_ended(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "twice", max_runs=2, overlap="allow")
        await make_schedule(store, "past", once(instant((clock.micros() // MINUTE - 1) * MINUTE)))
        for _ in range(3):
            clock.advance(minutes(1))
            await plan(store)

    an_hour_ago(work)
    for name in ("twice", "past"):
        last = answer("schedule", "occurrences", name)["items"][-1]
        newest = answer("explain", name)
        assert (newest["verdict"], newest["facts"]["at"]) == ("ran", last["plan_time"])


def test_columns_of_ranges_are_left_out_where_there_are_none(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "often", overlap="allow")
        clock.advance(minutes(1))
        await plan(store)

    an_hour_ago(work)
    end = datetime.now(UTC) - timedelta(minutes=58)
    header = on_terminal("schedule", "occurrences", "often", "--to", end.isoformat(), columns=140).splitlines()[0]
    assert header.split()[:2] == ["from", "outcome"]


def test_a_schedule_whose_provider_nobody_has_is_in_trouble(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "each", scopes="shops")
        await make_schedule(store, "held", scopes="shops")
        await store.schedules.pause("held", None, None, None)

    an_hour_ago(work)
    said = "overdue: no process with scope provider 'shops' plans it"
    troubles = {item["name"]: item["trouble"] for item in answer("schedule", "ls")["items"]}
    assert troubles == {"each": said, "held": None}
    assert answer("schedule", "get", "each")["trouble"] == said
    assert said in rota("schedule", "ls").stdout
    assert said in rota("schedule", "get", "each").stdout


def test_rm_says_when_it_comes_back(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        made = await make_schedule(store, "mine")
        for owner in ("code", "cli"):
            await store.schedules.create(owner, made.definition, owner)

    an_hour_ago(work)
    notes = {name: rota("schedule", "rm", name, "--yes").stderr for name in ("code", "cli", "mine")}
    assert notes == {
        "code": "note: it is declared in code, and comes back at the next start unless it is removed there\n",
        "cli": "",
        "mine": "note: it belongs to test, and comes back when that file is applied again\n",
    }


def test_ls_has_room_for_the_rule_and_the_last_run(an_hour_ago: Prepare) -> None:
    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "often")
        clock.advance(minutes(5))  # 55 to 56 minutes ago: a minute more would be told as an hour
        await plan(store)

    an_hour_ago(work)
    rota("schedule", "update", "often", "--cron", "0 9 * * MON-FRI", "--tz", "Europe/Berlin")
    header, row, *_ = on_terminal("schedule", "ls").splitlines()
    assert header.split()[:5] == ["name", "state", "rule", "next", "last"]
    assert "weekdays at 09:00, Eu" in row
    assert "○ queued 5" in row


@pytest.mark.parametrize(
    ("later", "shown"),
    [
        (timedelta(minutes=5), "in 5m"),
        (timedelta(minutes=-5), "5m ago"),
        (timedelta(hours=3), "15:00 UTC"),
        (timedelta(days=1), "Wed 12:00 UTC"),
        (timedelta(days=7), "2030-01-08"),
    ],
)
def test_the_next_plan_time_in_few_words(an_hour_ago: Prepare, later: timedelta, shown: str) -> None:
    now = datetime(2030, 1, 1, 12, tzinfo=UTC)

    async def work(store: Store, clock: ManualClock) -> None:
        await make_schedule(store)
        schedule = msgspec.structs.replace(await get_schedule(store), next_plan=now + later)
        assert soon_cell(schedule, now).shown == shown

    an_hour_ago(work)
