"""`rota import rq` from Redis: a real rq-scheduler wrote its jobs into a real server."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.schedules.test_import_sources import introduce
from tests.support.processes.command_line import answer, rota
from tests.support.servers.redis import server

WRITER = """
import os, sys
from datetime import UTC, date, datetime
from fractions import Fraction
from redis import Redis
from rq_scheduler import Scheduler


class Harm:
    def __reduce__(self):
        return os.system, ("touch harmed",)


redis = Redis(port=int(sys.argv[1]))
to = Scheduler(connection=redis)
start = datetime(2030, 1, 1, 9, 20, tzinfo=UTC)
to.cron("0 9 * * 1-5", "shop.sync", id="report", queue_name="mail", meta={"owner": "ada"})
to.cron("0 0 13 * 5", "shop.sync", id="friday", repeat=3)
to.schedule(start, "shop.sync", id="sync", interval=90, repeat=5, timeout="3m", on_failure="shop.sorry")
to.enqueue_at(start, "shop.bill", who="ada", job_id="launch", job_ttl=60)
to.enqueue_at(start, "shop.bill", "bob", job_id="position")
to.schedule(start, "shop.sync", id="dated", interval=60, kwargs={"day": date(2030, 1, 1)})
to.schedule(start, "shop.sync", id="harm", interval=60, args=[Harm()])
to.schedule(start, "shop.sync", id="meta", interval=60, meta={"thing": Harm()})
to.schedule(start, "shop.sync", id="follows", interval=60, depends_on="sync")
to.schedule(start, Fraction(1, 3).limit_denominator, id="method", interval=60)
to.schedule(start, "shop.sync", id="gone", interval=60)
redis.delete("rq:job:gone")
"""


def write(port: int, zone: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", WRITER, str(port)]
    subprocess.run(command, env={**os.environ, "TZ": zone}, check=True)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with server() as started:
        write(started.port, "UTC")
        yield started.port


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_what_a_real_scheduler_wrote(port: int) -> None:
    found = answer("import", "rq", f"redis://127.0.0.1:{port}/0", "--task", "shop.bill=bill(who)")
    assert {one["name"]: one for one in found["schedule"]} == {
        "report": {"name": "report", "job": "sync", "cron": "0 9 * * 1-5", "queue": "mail"},
        "friday": {"name": "friday", "job": "sync", "cron": "0 0 13 * +5", "max_runs": 3},
        "sync": {"name": "sync", "job": "sync", "every": "1m30s", "anchor": "2030-01-01T09:20:00Z",
                 "start_at": "2030-01-01T09:20:00Z", "max_runs": 5, "timeout": "3m"},
        "launch": {"name": "launch", "job": "bill", "payload": {"who": "ada"}, "once": "2030-01-01T09:20:00Z"},
        "position": {"name": "position", "job": "bill", "payload": {"who": "bob"}, "once": "2030-01-01T09:20:00Z"},
    }  # fmt: skip
    whys = {one["text"]: one["why"] for one in found["unconverted"]}
    assert whys == {
        "dated": "its argument 'day' is a date, which JSON does not have",
        "harm": "its state has a posix.system, which is not read: a pickle can run anything",
        "meta": "its state has a posix.system, which is not read: a pickle can run anything",
        "follows": "it waits for other jobs: `after` of a run, or a schedule that is following another",
        "method": "its state has a fractions.Fraction, which is not read: a pickle can run anything",
        "gone": "its job is no longer in Redis: rq-scheduler forgets it when its time comes",
    }
    assert found["remarks"] == [
        "report: meta.owner is not known, and left out",
        "launch: ttl is left out: it is about waiting in the queue; `catch_up` decides how late a run may begin",
        'sync: failure_callback_name is left out: it is for `@app.on("run.failed")`, or notifications',
    ]
    assert not Path("harmed").exists()


def test_they_are_applied(port: int, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DATABASE_URL", database_url)
    asyncio.run(introduce(database_url))
    words = ("import", "rq", f"redis://127.0.0.1:{port}", "--task", "shop.bill=bill(who)", "--apply", "--json")
    first, again = rota(*words, "--yes"), rota(*words, "--yes")
    assert (first.exit_code, json.loads(first.stdout)["counts"]["create"]) == (1, 5)
    assert (again.exit_code, json.loads(again.stdout)["counts"]["unchanged"]) == (1, 5)
    assert "note: job 6: harm: its state has a posix.system" in first.stderr
    assert answer("schedule", "get", "launch")["owner"] == "rq"


def test_the_zone_of_the_machine() -> None:
    """rq-scheduler reads expressions in the local time of its machine, whatever `use_local_timezone` says."""
    with server() as started:
        write(started.port, "Asia/Tokyo")
        url = f"redis://127.0.0.1:{started.port}"
        found = answer("import", "rq", url)
        (why,) = [one["why"] for one in found["unconverted"] if one["text"] == "report"]
        assert "at which '0 9 * * 1-5' does not fire in UTC: name the zone of its machine with --tz" in why
        found = answer("import", "rq", url, "--tz", "Asia/Tokyo")
        assert [one["timezone"] for one in found["schedule"] if "cron" in one] == ["Asia/Tokyo", "Asia/Tokyo"]
        found = answer("import", "rq", url, "--tz", "Asia/Kolkata")
        assert any("does not fire in Asia/Kolkata: compare the times" in remark for remark in found["remarks"])


def test_what_is_no_redis(port: int, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for url, code, why in (
        (f"redis://127.0.0.1:{unused_tcp_port}", 69, "cannot read Redis"),
        (f"redis://:secret@127.0.0.1:{port}", 69, "cannot read Redis"),
        (f"redis://127.0.0.1:{port}/7", 2, "rq-scheduler has no jobs in this database"),
        ("http://127.0.0.1:1", 2, "none of Redis"),
        ("redis://127.0.0.1:port", 2, "none of Redis"),
        ("missing.json", 2, "missing.json"),
    ):
        refused = rota("import", "rq", url)
        assert (refused.exit_code, why in refused.stderr, "secret" in refused.stderr) == (code, True, False), refused
    monkeypatch.setitem(sys.modules, "redis", None)
    assert 'pip install "rota[redis]"' in rota("import", "rq", "redis://127.0.0.1").stderr
