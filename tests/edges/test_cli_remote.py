"""`rota --server`: the command line asks a server instead of a database."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from rota.api import asgi
from rota.app import Rota
from rota.cli import root
from rota.core.access import Role
from rota.core.signals import Fail
from rota.engine.context import SyncContext
from rota.store import Store, open_database
from rota.testing import drain
from tests.support.runs import WORKER
from tests.support.serving import Site, serving

Rotas = Callable[..., Result]


def make_app(url: str, **settings: Any) -> Rota:
    app = Rota(url, **settings)

    @app.job
    def greet(ctx: SyncContext, name: str = "you") -> str:
        ctx.log.info("greeting %s", name)
        return f"hello {name}"

    @app.job(max_attempts=1)
    def boom() -> None:
        raise Fail("boom")

    async def introduce() -> None:
        store = Store(open_database(url))
        await store.migrate()
        await store.save_jobs(app.registry.definitions())
        await store.workers.beat(msgspec.structs.replace(WORKER, id="web@aa11", name="web"))
        await store.close()

    asyncio.run(introduce())
    return app


@pytest.fixture
def app(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rota:
    """Nothing in the folder, and nothing set, leads to the database."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name in ("ROTA_DATABASE_URL", "ROTA_SERVER", "ROTA_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return make_app(sqlite_url)


@pytest.fixture
def site(app: Rota) -> Iterator[Site]:
    with serving(asgi(app), app) as site:
        yield site


@pytest.fixture
def rota(site: Site) -> Rotas:
    return lambda *arguments, **more: CliRunner().invoke(root, ["--server", site.url, *arguments], **more)


def told(done: Result) -> Any:
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_runs(app: Rota, rota: Rotas) -> None:
    id = rota("run", "add", "greet", '{"name": "Ada"}', "--delay", "0s").stdout.strip()
    drain(app)
    failed = rota("run", "add", "boom").stdout.strip()
    drain(app)
    assert [run["id"] for run in told(rota("run", "ls", "--json"))["items"]] == [failed, id]
    assert told(rota("run", "show", id[-8:], "--json"))["result"] == "hello Ada"
    assert rota("run", "wait", id).exit_code == 0
    assert rota("run", "wait", failed).exit_code == 1
    assert rota("run", "watch", id).stdout.endswith('\t"hello Ada"\n')
    assert "greeting Ada" in rota("run", "logs", id, "-f").stdout
    assert rota("run", "count", "--state", "failed").stdout.strip() == "1"
    for command in ("steps", "events"):
        assert rota("run", command, id).exit_code == 0
    again = rota("run", "retry", failed)
    assert again.exit_code == 0
    assert rota("run", "cancel", again.stdout.split()[0], "--reason", "no").exit_code == 0
    assert rota("run", "retry", "--job", "boom", "--yes").stdout.strip() == "1"  # the other one was retried already
    assert (
        rota("run", "restrict", told(rota("run", "ls", "--json"))["items"][0]["id"], "--only-workers", "x").exit_code
        == 0
    )
    assert rota("explain", id).exit_code == 0
    assert "retried" in rota("audit").stdout


def test_a_run_is_waited_for(app: Rota, rota: Rotas) -> None:
    async def beside() -> Result:
        async with app.running():
            return await asyncio.to_thread(rota, "run", "add", "greet", "--wait")

    done = asyncio.run(beside())
    assert done.exit_code == 0, done.stderr
    assert done.stdout.split("\t")[1:] == ["succeeded", '"hello you"\n']


def test_jobs_and_queues(rota: Rotas) -> None:
    assert [job["name"] for job in told(rota("job", "ls", "--json"))["items"]] == ["boom", "greet"]
    assert told(rota("job", "show", "greet", "--json"))["status"]["state"] == "pending"
    for arguments in (
        ("job", "pause", "greet", "--reason", "r"),
        ("job", "resume", "greet"),
        ("job", "stats", "greet"),
        ("job", "cancel", "greet", "--yes"),
        ("queue", "pause", "default"),
        ("queue", "ls"),
        ("queue", "resume", "default"),
    ):
        done = rota(*arguments)
        assert done.exit_code == 0, (arguments, done.stderr)
    assert rota("job", "retry", "greet").exit_code == 6
    assert rota("job", "show", "gret").exit_code == 4


def test_schedules(rota: Rotas, tmp_path: Path) -> None:
    made = told(rota("schedule", "add", "news", "greet", '{"name": "Bo"}', "--every", "30m", "--json"))
    assert (made["owner"], made["definition"]["payload"]) == ("cli", {"name": "Bo"})
    file = tmp_path / "schedules.toml"
    file.write_text('owner = "me"\n[[schedule]]\nname = "filed"\njob = "boom"\nonce = 2031-01-01T00:00:00Z\n')
    for arguments in (
        ("ls",),
        ("show", "news"),
        ("edit", "news", "--every", "1h", "--overlap", "queue_one"),
        ("pause", "news", "--until", "2h"),
        ("resume", "news"),
        ("disable", "news"),
        ("enable", "news"),
        ("trigger", "news"),
        ("preview", "news"),
        ("simulate", "news", "--for", "3h", "--overlap", "skip"),
        ("occurrences", "news"),
        ("events", "news"),
        ("verify", "news"),
        ("plan", str(file)),
        ("apply", str(file)),
        ("rm", "news", "--yes"),
    ):
        done = rota("schedule", *arguments)
        assert done.exit_code == 0, (arguments, done.stderr, done.exception)
    assert [one["name"] for one in told(rota("schedule", "ls", "--json"))["items"]] == ["filed"]


def test_workers_and_tokens(rota: Rotas) -> None:
    assert [worker["id"] for worker in told(rota("workers", "ls", "--json"))["items"]] == ["web@aa11"]
    for arguments in (
        ("workers", "show", "web"),
        ("workers", "drain", "web"),
        ("workers", "resume", "web"),
        ("workers", "set", "web", "--slots", "4"),
        ("workers", "stop", "web", "--yes"),
        ("token", "create", "ci", "--role", "viewer"),
        ("token", "ls"),
        ("token", "revoke", "ci"),
    ):
        done = rota(*arguments)
        assert done.exit_code == 0, (arguments, done.stderr)
    assert rota("workers", "show", "mail").exit_code == 4


def test_what_needs_the_database_says_so(rota: Rotas) -> None:
    for arguments in (["migrate"], ["doctor"], ["prune"], ["dev"], ["server"], ["worker", "jobs:app"]):
        done = rota(*arguments)
        assert done.exit_code == 2, arguments
        assert f"`rota {arguments[0]}` needs the database itself" in done.stderr
    done = rota("quota", "ls")
    assert (done.exit_code, "not offered over HTTP" in done.stderr) == (2, True)


def test_what_needs_nobody_works_as_ever(rota: Rotas) -> None:
    assert rota("cron", "0 3 * * *").exit_code == 0


def test_the_environment_names_it(site: Site, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_SERVER", site.url)
    assert CliRunner().invoke(root, ["job", "ls"]).exit_code == 0
    assert CliRunner().invoke(root, ["prune"]).exit_code == 2
    assert CliRunner().invoke(root, ["prune", "--database", sqlite_url]).exit_code == 0
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    assert CliRunner().invoke(root, ["prune"]).exit_code == 0
    monkeypatch.setenv("ROTA_SERVER", "http://127.0.0.1:1")
    assert CliRunner().invoke(root, ["job", "ls"]).exit_code == 69
    assert CliRunner().invoke(root, ["job", "ls", "--database", sqlite_url]).exit_code == 0


def test_contradictions_are_refused(rota: Rotas, sqlite_url: str) -> None:
    assert rota("job", "ls", "--database", sqlite_url).exit_code == 2
    assert CliRunner().invoke(root, ["--token", "x", "job", "ls"]).exit_code == 2
    assert CliRunner().invoke(root, ["--server", "nowhere", "job", "ls"]).exit_code == 2


def test_a_server_that_is_away() -> None:
    done = CliRunner().invoke(root, ["--server", "http://127.0.0.1:1", "run", "ls", "--json"])
    problem = json.loads(done.stderr)
    assert (done.exit_code, problem["code"]) == (69, "unavailable")


def test_who_may_not(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(sqlite_url, auth=True)
    secret = app.blocking.tokens.create("reader", Role.VIEWER).secret
    app.close()
    monkeypatch.chdir(tmp_path)
    with serving(asgi(app), app) as site:
        run = CliRunner().invoke
        assert run(root, ["--server", site.url, "run", "ls"]).exit_code == 5
        wrong = run(root, ["--server", site.url, "--token", f"{secret}x", "run", "ls"])
        assert (wrong.exit_code, secret in wrong.output) == (5, False)
        assert run(root, ["--server", site.url, "--token", secret, "run", "ls"]).exit_code == 0
        monkeypatch.setenv("ROTA_TOKEN", secret)
        assert run(root, ["--server", site.url, "run", "ls"]).exit_code == 0
        assert run(root, ["--server", site.url, "job", "pause", "greet"]).exit_code == 5
