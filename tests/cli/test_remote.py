"""`rota --server`: the command line asks a server instead of a database."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner, Result

from rota.api import asgi
from rota.app import Rota
from rota.cli import root
from rota.core.access.roles import Role
from rota.core.progress.control_flow import Fail
from rota.engine.handlers.context import SyncContext
from rota.remote import connect
from rota.store import Store, open_database
from rota.testing import drain
from tests.support.runs.runs import WORKER
from tests.support.servers.http_server import Site, serving

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

    app.external("look", max_attempts=1)

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
    """Remove all settings that name the database, so that only the server can answer."""
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


def test_a_run_is_waited_for(app: Rota, rota: Rotas) -> None:
    async def beside() -> Result:
        async with app.running():
            return await asyncio.to_thread(rota, "run", "enqueue", "greet", "--wait")

    done = asyncio.run(beside())
    assert done.exit_code == 0, done.stderr
    assert done.stdout.split("\t")[1:] == ["succeeded", '"hello you"\n']


def test_what_needs_the_database_says_so(rota: Rotas) -> None:
    for arguments in (
        ["migrate"],
        ["promote", "--to", "postgresql://db/rota"],
        ["doctor"],
        ["prune"],
        ["dev"],
        ["server"],
        ["worker", "jobs:app"],
    ):
        done = rota(*arguments)
        assert done.exit_code == 2, arguments
        assert f"`rota {arguments[0]}` needs the database itself" in done.stderr


LOCAL = {
    "migrate": "tables are made where the database is",
    "doctor": "it looks at what a server itself may be missing",
    "prune": "servers and workers do it by themselves",
    "dev": "it is a server",
    "server": "it is one",
    "worker": "it claims and reports at the database",
    "promote": "it has two databases, and freezes the one",
    "import apscheduler": "it reads a database; then it goes on as the other imports",
    "database accept": "a server on a copy answers; tests/store/databases/test_copies.py has one",
    "init": "it asks nobody",
    "cron": "it asks nobody",
    "completion": "it asks nobody",
}

EVERY = """
run enqueue greet --delay 1h
run list
run get {boom}
run wait {boom}: 1
run watch {boom}: 1
run logs {boom} -f
run steps {boom}
run attempts {boom}
run parents {boom}
run children {boom}
run replicas {boom}
run family {boom}
run events {boom}
run count --job boom
run retry {boom}
run retry --job boom --yes
run restrict {greet} --only-workers web
run cancel {greet}
run complete {look} --fence 1 --result 7
run fail {other} --fence 1 --error jammed --no-retry
explain {boom}
upcoming
attention list
database get
audit
attention snooze --kind run_slow --subject {boom}: 4
error-groups
top --once
mcp
export runs --job boom
export attempts
export events
job list
job get greet
job stats greet
job pause greet
job resume greet
job create ping --url https://example.com --header Authorization:x --set priority=5
job update ping --timeout 3s --set backoff=["5s"]
job delete ping
job restore ping
job limit ping 5/s --for 2h
job retry look
job bulk resume --name look --yes
job cancel greet --yes
job resume greet
queue list
queue limit default 3
queue limit default --clear
queue pause default
attention snooze --kind queue_paused --subject default --reason moved
attention unsnooze --kind queue_paused --subject default
queue resume default
quota update account/42 --max-concurrency 3 --rate 10/1m
quota list
quota get account/42
quota delete account/42
scope pause account/42 --reason moved
scope resume account/42
expectation update --job greet --start-within 5m --max-failures 3
expectation list
expectation get --job greet
expectation list --breached
expectation delete --job greet
notification create ops --to {hook} --job greet
notification list
notification get ops
notification update ops --disabled
notification test ops: 69
notification delete ops --yes
schedule create news greet --every 30m
schedule list
schedule get news
schedule update news --every 1h
schedule pause news --until 2h
schedule resume news
schedule disable news
schedule enable news
schedule trigger news
schedule preview news
schedule simulate news --for 3h
schedule occurrences news
schedule events news
schedule verify news
schedule backfill news --from 2026-01-01T00:00:00Z --to 2026-01-01T02:00:00Z --yes
schedule plan {file}
schedule apply {file}
schedule delete news --yes
schedule restore news
purge --older-than 7d --yes
workers list
workers get web
workers drain web
workers resume web
workers update web --slots 4
workers stop web --yes
token create ci --role viewer
token list
token revoke ci
import crontab {crontab} --job look --apply --yes
import intervals {intervals} --job greet --apply --yes
import celery {celery} --task shop.look=look --apply --yes
import rq {rq} --task shop.look=look --apply --yes
import kubernetes {kubernetes} --job look --apply --yes
import github {github} --job look --apply --yes
import systemd {systemd} --job look --apply --yes
"""

FILES = {
    "file": '[[schedule]]\nname = "filed"\njob = "greet"\nevery = "1h"\n',
    "crontab": "0 3 * * * scan --all\n",
    "intervals": '[{"name": "a", "interval_minutes": 5}]',
    "celery.py": "beat_schedule = {'often': {'task': 'shop.look', 'schedule': 60}}",
    "rq": '[{"id": "r", "func_name": "shop.look", "meta": {"interval": 60}}]',
    "kubernetes": "kind: List\nitems: []\n",
    "github.yml": "on: {schedule: []}\njobs: {}\n",
    "systemd.timer": "[Timer]\nOnCalendar=hourly UTC\nUnit=scan.service\n",
    "scan.service": "[Service]\nExecStart=/bin/scan\n",
}


def commands(group: click.Command, above: str = "") -> Iterator[str]:
    if isinstance(group, click.Group):
        for name, command in group.commands.items():
            yield from commands(command, f"{above} {name}".strip())
    else:
        yield above


def test_every_command_there_is(app: Rota, site: Site, rota: Rotas, tmp_path: Path) -> None:
    """Run every command with --server; the others are listed with the reason why they need the database."""
    words = {"hook": "http://127.0.0.1:1/hook"}
    for name, text in FILES.items():
        words[name.partition(".")[0]] = str(tmp_path / name)
        (tmp_path / name).write_text(text)
    for name, job in (("boom", "boom"), ("look", "look"), ("other", "look")):
        words[name] = rota("run", "enqueue", job).stdout.strip()
    drain(app)
    client = connect(site.url)
    assert len(client.external.claim("scanner", max=2)) == 2
    client.close()
    words["greet"] = rota("run", "enqueue", "greet").stdout.strip()
    tried: set[str] = set()
    for line in EVERY.strip().splitlines():
        arguments, _, code = line.partition(": ")
        done = rota(*[word.format(**words) if "{" in word else word for word in arguments.split()])
        assert (line, done.exit_code) == (line, int(code or 0)), (done.stdout, done.stderr, done.exception)
        tried |= {one for one in commands(root) if f"{arguments} ".startswith(f"{one} ")}
    assert tried | set(LOCAL) == set(commands(root))
    assert tried & set(LOCAL) == set()


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
