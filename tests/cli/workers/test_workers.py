"""Workers from the command line: lists and requests."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.cli.options import queues_of
from rota.core.workers.worker import OperatorRequest, Pace, WorkerSettings, WorkerState, read_asked
from rota.errors import Invalid
from rota.store import Store, open_database
from tests.support.processes.command_line import answer, rota
from tests.support.runs.runs import LEASE_MICROS, WORKER, claim, put

PACE = Pace(heartbeat=timedelta(seconds=10), poll=timedelta(seconds=1), lease=timedelta(seconds=30))


async def beat(url: str, id: str, **facts: Any) -> OperatorRequest:
    store = Store(open_database(url))
    await store.migrate()
    info = msgspec.structs.replace(WORKER, id=id, name=id.partition("@")[0], pace=PACE, **facts)
    asked = (await store.extend(info, [], LEASE_MICROS)).asked
    await store.close()
    return read_asked(asked)


async def silence(url: str, id: str) -> None:
    """Let the last heartbeat of a worker be longer ago than its lease."""
    database = open_database(url)
    later = "update rota_worker set seen_at = seen_at - 60000000 where id"
    await database.transact(lambda tx: tx.script(f"{later} = '{id}'"))
    await database.close()


async def hold_a_run(url: str, worker: str) -> str:
    store = Store(open_database(url))
    run = await put(store)
    await claim(store, worker=worker)
    await store.close()
    return run


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(beat(sqlite_url, "web@aa11", queues=("a", "b"), weights={"a": 3, "b": 1}))
    asyncio.run(beat(sqlite_url, "mail@bb22"))
    return sqlite_url


def test_they_are_listed(url: str) -> None:
    run = asyncio.run(hold_a_run(url, "web@aa11"))
    mail, web = answer("workers", "ls")["items"]
    assert (mail["id"], mail["queues"], mail["held"]) == ("mail@bb22", {"default": 1}, 0)
    assert (web["state"], web["queues"], web["heartbeat"]) == ("working", {"a": 3, "b": 1}, "10s")
    assert [one["id"] for one in web["runs"]] == [run]
    fields = rota("workers", "ls").stdout.splitlines()[1].split("\t")
    assert fields[:6] == ["web@aa11", "working", "here", "1", "10", "a:3,b:1"]


def test_one_is_shown_by_name_or_by_the_beginning_of_its_id(url: str) -> None:
    run = asyncio.run(hold_a_run(url, "web@aa11"))
    assert answer("workers", "get", "web")["id"] == answer("workers", "get", "web@a")["id"] == "web@aa11"
    shown = rota("workers", "get", "web").stdout
    assert "heartbeat\t10s" in shown
    assert f"{run}\twork\t1" in shown


def test_drain_resume_and_set(url: str) -> None:
    (drained,) = answer("workers", "drain", "web")["items"]
    assert drained["asked"]["state"] == "draining"
    assert drained["asked_by"].startswith("cli")
    assert "draining" in rota("workers", "get", "web").stdout
    answer("workers", "update", "web", "--slots", "3", "--queues", "a:2,c", "--poll", "500ms")
    heard = asyncio.run(beat(url, "web@aa11"))
    expected = WorkerSettings(slots=3, queues={"a": 2, "c": 1}, poll=timedelta(milliseconds=500))
    assert heard == OperatorRequest(WorkerState.DRAINING, expected)
    assert "slots 3, queues a:2,c:1, poll 500ms" in rota("workers", "ls").stdout
    answer("workers", "resume", "web")
    assert asyncio.run(beat(url, "web@aa11")).state is WorkerState.WORKING
    assert asyncio.run(beat(url, "mail@bb22")) == OperatorRequest()


def test_the_dead_are_not_counted(url: str) -> None:
    """One that died stays listed for a day: it is not one more worker to stop."""
    asyncio.run(silence(url, "web@aa11"))
    asyncio.run(beat(url, "web@cc33"))
    assert rota("workers", "stop", "web").exit_code == 0
    asyncio.run(beat(url, "web@dd44"))
    assert "stop 2 workers named web, which" in rota("workers", "stop", "web").stderr


def test_several_are_stopped_with_consent_only(url: str) -> None:
    asyncio.run(beat(url, "web@cc33"))
    refused = rota("workers", "stop", "web")
    assert refused.exit_code == Invalid.exit_code
    assert "stop 2 workers named web, which execute 0 runs" in refused.stderr
    assert asyncio.run(beat(url, "web@aa11")) == OperatorRequest()
    assert answer("workers", "stop", "mail")["items"][0]["asked"]["state"] == "stopping"
    assert len(answer("workers", "stop", "web", "--yes")["items"]) == 2
    assert asyncio.run(beat(url, "web@cc33")).state is WorkerState.STOPPING


def test_a_weight_is_behind_the_last_colon() -> None:
    assert queues_of("critical:4, default,a:b,c:d:7") == {"critical": 4, "default": 1, "a:b": 1, "c:d": 7}
    with pytest.raises(Invalid):
        queues_of("a,,b")
