"""Expectations from the command line: set, listed, deleted; and the exit code for breaches."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota.core.jobs.job import JobDefinition
from rota.store import Store, open_database
from tests.cli.admin.test_doctor import past
from tests.support.clock import MINUTE, ManualClock
from tests.support.processes.command_line import rota
from tests.support.runs.runs import put
from tests.support.schedules.schedules import make_schedule

Prepare = Callable[[Store, ManualClock], Awaitable[None]]


def prepared(url: str, *work: Prepare) -> None:
    async def body() -> None:
        clock = past()
        store = Store(open_database(url, clock))
        await store.migrate()
        await store.save_jobs([JobDefinition(name="work")])
        for one in work:
            await one(store, clock)
        await store.close()

    asyncio.run(body())


@pytest.fixture
def known_url(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    prepared(sqlite_url)
    return sqlite_url


def told(*arguments: str) -> Any:
    done = rota(*arguments, "--json")
    return json.loads(done.stdout)


async def late(store: Store, clock: ManualClock) -> None:
    """Create a run that has been due for ten minutes, and check expectations once."""
    await store.expectations.update("job", "work", {"start_within": "1m"}, "ann")
    await put(store)
    clock.advance(10 * MINUTE)
    await store.expectations.watch()


def test_set_told_and_removed(known_url: str) -> None:
    assert rota("expectation", "ls").stdout == ""
    done = rota("expectation", "update", "--job", "work", "--start-within", "5m", "--max-failures", "3")
    assert done.exit_code == 0
    assert done.stdout.startswith("job\twork\tmet\tstart_within 5m, max_consecutive_failures 3\tcli:")
    (one,) = told("expectation", "ls")["items"]
    assert (one["subject"], one["expect"]) == ("work", {"start_within": "5m", "max_consecutive_failures": 3})
    changed = told("expectation", "update", "--job", "work", "--max-failures", "none", "--min-success-rate", "95%")
    assert changed["expect"] == {"start_within": "5m", "min_success_rate": 0.95}
    assert told("expectation", "get", "--job", "work")["expect"] == changed["expect"]
    assert "expect\tstart_within 5m, min_success_rate 0.95\n" in rota("job", "get", "work").stdout
    assert told("expectation", "rm", "--job", "work") == {"kind": "job", "name": "work", "deleted": True}
    assert rota("expectation", "rm", "--job", "work").exit_code == 4
    assert told("expectation", "ls") == {"items": [], "next_cursor": None}


def test_what_is_breached_is_an_exit_code(known_url: str) -> None:
    assert rota("expectation", "ls", "--breached").exit_code == 0
    prepared(known_url, late)
    done = rota("expectation", "ls", "--breached")
    assert done.exit_code == 1
    assert "\tbreached\t" in done.stdout
    assert rota("expectation", "ls").exit_code == 0
    (one,) = told("expectation", "ls", "--breached")["items"]
    assert [breach["what"] for breach in one["breaches"]] == ["start_within"]
    assert "and has not begun; start_within is 1m (breached" in rota("job", "get", "work").stdout
    done = rota("doctor")
    assert "warning\texpected\t1 expectation is breached: job work: run " in done.stdout


def test_of_a_schedule(known_url: str) -> None:
    async def scheduled(store: Store, clock: ManualClock) -> None:
        await make_schedule(store, "news", expect={"success_every": "25h"})

    prepared(known_url, scheduled)
    found = told("schedule", "get", "news")
    assert told("expectation", "get", "--schedule", "news")["owner"] == "code"
    assert found["definition"]["expect"] == {"success_every": "1d1h"}
    assert "expect\tsuccess_every 1d1h\n" in rota("schedule", "get", "news").stdout
    assert told("expectation", "update", "--schedule", "news", "--finish-within", "2h")["kind"] == "schedule"
    rota("schedule", "pause", "news")
    assert [one["resting"] for one in told("expectation", "ls")["items"]] == [True]
    rota("schedule", "update", "news", "--set", 'expect={"success_every": "2d"}')
    found = told("schedule", "get", "news")
    assert found["definition"]["expect"] == {"success_every": "2d"}
    own = told("expectation", "get", "--schedule", "news")
    assert own["expect"] == {"finish_within": "2h", "success_every": "1d1h"}  # somebody's own


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["update", "--start-within", "5m"], 2, "give --job or --schedule"),
        (["update", "--job", "work", "--schedule", "news", "--start-within", "5m"], 2, "give --job or --schedule"),
        (["update", "--job", "work"], 2, "expect is empty"),
        (["update", "--job", "work", "--max-failures", "some"], 2, "whole number"),
        (["rm"], 2, "give --job or --schedule"),
    ],
)
def test_what_is_refused(known_url: str, arguments: list[str], code: int, says: str) -> None:
    done = rota("expectation", *arguments)
    assert done.exit_code == code
    assert says in done.stderr
