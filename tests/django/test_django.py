"""Test `rota.django` in a generated project: its database, connections around handlers, and commands."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg.connect_utils
import pytest

from rota.cli.load_app import load_app
from rota.django.databases import _beside, _postgres
from rota.errors import BadConfig
from tests.support.processes.rota_process import environment_with

PROJECT = """
import json, sys
import django
from django.conf import settings

settings.configure(**json.loads(sys.argv[1]), USE_TZ=True)
django.setup()

from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from rota import Invalid
from rota.django import app, on_commit


def backend_now():
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return cursor.fetchone()[0]


@app.job(max_attempts=1)
def backend() -> int:
    return backend_now()


@app.job(max_attempts=1)
async def abackend() -> int:
    return await sync_to_async(backend_now)()


@app.job(max_attempts=1)
def cut() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pg_backend_pid())")


@app.job
def greet(names: list[str]) -> None: ...


@app.job(max_attempts=1)
async def acut() -> None:
    await sync_to_async(cut.fn)()
"""

CUT_CONNECTIONS = """
call_command("migrate", verbosity=0)
with app.background() as client:
    def result(job):
        return client.wait(job.enqueue().id, "60s")

    for job, cutter in ((backend, cut), (abackend, acut)):
        first = result(job).result
        assert result(job).result == first  # the thread keeps its connection
        assert result(cutter).state == "failed"
        assert result(job).result not in (first, None)  # and gets another one

    queued = len(client.list())
    try:
        with transaction.atomic():
            on_commit(backend)
            raise ZeroDivisionError
    except ZeroDivisionError:
        assert len(client.list()) == queued
    names = ["ada"]
    with transaction.atomic():
        on_commit(greet, names)
        names.append("changed since")
    assert [run.payload for run in client.list() if run.job == "greet"] == [{"names": ["ada"]}]
    with transaction.atomic():
        first = backend.options(key="one").enqueue_in(connection)
        assert backend.options(key="one").enqueue_in(connection) == first
        after = backend.options(after=[first]).enqueue_in(connection)
    assert client.wait(after, "60s").state == "succeeded"
    try:
        backend.enqueue_in(connection)
    except Invalid as error:
        assert "transaction.atomic" in error.hint
app.close()
"""

COMMANDS = """
from rota.core.runs.run import RunFilter
call_command("migrate", verbosity=0)
backend.enqueue()
call_command("rota", "run", "ls", "--json")
try:
    call_command("rota", "run", "get", "ffffffff")
except CommandError as error:
    assert error.returncode == 4, error.returncode
else:
    raise AssertionError
assert (app.config.concurrency, app.config.database_url) == (3, sys.argv[2])
app.close()
"""


def run_in_project(code: str, folder: Path, *words: str, **settings: Any) -> str:
    (folder / "project.py").write_text(PROJECT + code)
    given = {"INSTALLED_APPS": ["rota.django"], **settings}
    done = subprocess.run(
        [sys.executable, "project.py", json.dumps(given), *words],
        cwd=folder,
        env=environment_with({}),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def database_at(url: str) -> dict[str, Any]:
    at = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": at.path.removeprefix("/"),
        "USER": at.username or "",
        "PASSWORD": at.password or "",
        "HOST": at.hostname or "",
        "PORT": at.port or "",
        "CONN_MAX_AGE": None,  # a connection is kept, until it is found broken
    }


def test_a_cut_connection_fails_one_attempt_only(new_postgres_url: str, tmp_path: Path) -> None:
    databases = {"default": database_at(new_postgres_url)}
    run_in_project(CUT_CONNECTIONS, tmp_path, DATABASES=databases, ROTA={"concurrency": 1})


def test_commands_and_settings_on_sqlite(tmp_path: Path) -> None:
    databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db.sqlite3")}}
    url = f"sqlite:///{tmp_path}/rota-db.sqlite3"
    told = run_in_project(COMMANDS, tmp_path, url, DATABASES=databases, ROTA={"concurrency": 3})
    assert [run["job"] for run in json.loads(told)["items"]] == ["backend"]


ELSEWHERE = """
import os
backend.enqueue()
call_command("rota", "run", "ls", "--json")
assert "ROTA_DATABASE_URL" not in os.environ  # of a process that goes on
app.close()
"""


def test_commands_ask_the_database_that_settings_name(tmp_path: Path) -> None:
    databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db.sqlite3")}}
    rota = {"database_url": f"sqlite:///{tmp_path}/elsewhere.db"}
    told = run_in_project(ELSEWHERE, tmp_path, DATABASES=databases, ROTA=rota)
    assert [run["job"] for run in json.loads(told)["items"]] == ["backend"]


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({"NAME": "shop"}, "postgresql:///shop"),
        ({"NAME": "shop", "USER": "ada", "HOST": "db"}, "postgresql://ada@db/shop"),
        (
            {"NAME": "sh/op", "USER": "a@b", "PASSWORD": "p:/?#", "HOST": "::1", "PORT": 5433},
            "postgresql://a%40b:p%3A%2F%3F%23@[::1]:5433/sh%2Fop",
        ),
        (
            {"NAME": "shop", "HOST": "/run/pg", "PORT": "5433", "OPTIONS": {"sslmode": "require", "pool": True}},
            "postgresql:///shop?sslmode=require&host=%2Frun%2Fpg&port=5433",
        ),
    ],
)
def test_djangos_postgres_is_rotas(settings: dict[str, Any], url: str) -> None:
    assert _postgres(settings) == url


def test_a_driver_understands_such_a_url_as_django_means_it() -> None:
    url = _postgres({"NAME": "sh/op", "USER": "a@b", "PASSWORD": "p:/?#", "HOST": "/run/pg", "PORT": "5433"})
    parse = vars(asyncpg.connect_utils)["_parse_connect_dsn_and_args"]
    how = dict.fromkeys(
        ("host", "port", "user", "password", "passfile", "database", "ssl", "service", "servicefile", "direct_tls")
    )
    how |= dict.fromkeys(("server_settings", "target_session_attrs", "krbsrvname", "gsslib"))
    addresses, found = parse(dsn=url, **how)
    assert addresses == ["/run/pg/.s.PGSQL.5433"]
    assert (found.user, found.password, found.database) == ("a@b", "p:/?#", "sh/op")


def test_djangos_sqlite_has_rotas_beside_it(tmp_path: Path) -> None:
    assert _beside(str(tmp_path / "db.sqlite3")) == tmp_path / "rota-db.sqlite3"
    assert _beside("file:memorydb_default?mode=memory&cache=shared") == _beside(":memory:")
    assert _beside(":memory:").parent.is_dir()


def test_without_settings_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    with pytest.raises(BadConfig, match="settings are not configured") as refused:
        load_app("rota.django:app")
    assert "manage.py rota" in str(refused.value.hint)


UNDER_TEST = """
import os
from django.test.runner import DiscoverRunner

backend.enqueue()  # a program that enqueues before its tests begin
for _ in range(2):
    runner = DiscoverRunner(verbosity=0, interactive=False)
    names = runner.setup_databases()
    backend.enqueue()
    assert len(app.blocking.list()) == 1, app.config.database_url
    runner.teardown_databases(names)
assert len(app.blocking.list()) == 1, app.config.database_url
app.close()
assert [name for name in os.listdir() if "test" in name] == []
"""


def test_tests_have_runs_of_their_own_and_leave_none(tmp_path: Path) -> None:
    names = {"NAME": str(tmp_path / "db.sqlite3"), "TEST": {"NAME": str(tmp_path / "test.sqlite3")}}
    run_in_project(UNDER_TEST, tmp_path, DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", **names}})
