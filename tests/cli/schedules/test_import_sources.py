"""`rota import celery|apscheduler|kubernetes|github|systemd|rq`: from tables, modules and files into the database."""

import asyncio
import base64
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml

from rota.app import Rota
from rota.store import Store, file_of, open_database
from rota.store.databases.foreign_tables import read_file
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import answer, rota

DATA = Path(__file__).parents[2] / "core" / "formats" / "task_queues"
JOBS = json.loads((DATA / "apscheduler_jobs.json").read_text())
BEAT = json.loads((DATA / "django_celery_beat.json").read_text())


async def introduce(url: str) -> None:
    app = Rota(url)

    @app.job
    async def run_command(command: str, environment: dict[str, str] | None = None, user: str = "") -> None: ...

    @app.job
    async def crawl(url: str) -> None: ...

    @app.job
    async def bill(who: str) -> None: ...

    @app.job
    async def sync() -> None: ...

    await save_jobs_of(app)


@pytest.fixture
def known_url(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", database_url)
    asyncio.run(introduce(database_url))
    return database_url


def foreign_rows() -> dict[str, list[dict[str, Any]]]:
    """Return the tables of APScheduler and django-celery-beat, whose references have a suffix there."""
    jobs = [{**row, "job_state": base64.b64decode(row["job_state"])} for row in JOBS]
    tables: dict[str, list[dict[str, Any]]] = {"apscheduler_jobs": jobs}
    for table in ("periodictask", "intervalschedule", "crontabschedule", "clockedschedule", "solarschedule"):
        records = [one for one in BEAT if one["model"] == f"django_celery_beat.{table}"]
        references = ("interval", "crontab", "solar", "clocked") if table == "periodictask" else ()
        tables[f"django_celery_beat_{table}"] = [
            {"id": one["pk"], **{key + "_id" * (key in references): value for key, value in one["fields"].items()}}
            for one in records
        ]
    return tables


def kind_of(rows: list[dict[str, Any]], key: str) -> type:
    return next((type(row[key]) for row in rows if row[key] is not None), str)


def statements(blob: str, mark: str) -> list[tuple[str, list[tuple[Any, ...]], str]]:
    made = []
    for table, rows in foreign_rows().items():
        kinds = {bytes: blob, float: "double precision", int: "integer", bool: "boolean", str: "text"}
        columns = ", ".join(f'"{key}" {kinds[kind_of(rows, key)]}' for key in rows[0])
        marks = ", ".join(mark.format(number) for number in range(1, len(rows[0]) + 1))
        made.append(
            (
                f"create table {table} ({columns})",
                [(*row.values(),) for row in rows],
                f"insert into {table} values ({marks})",
            )
        )
    return made


async def fill_postgres(url: str) -> None:
    connection = await asyncpg.connect(url)
    for create, rows, insert in statements("bytea", "${}"):
        await connection.execute(create)
        await connection.executemany(insert, rows)
    await connection.close()


@pytest.fixture
def foreign_url(known_url: str) -> str:
    """Tables of other programs: beside rota's on PostgreSQL, in a file of their own on SQLite."""
    if known_url.startswith("postgres"):
        asyncio.run(fill_postgres(known_url))
        return known_url.replace("postgresql://", "postgresql+psycopg://")
    with sqlite3.connect("foreign.sqlite") as connection:
        for create, rows, insert in statements("blob", "?"):
            connection.execute(create)
            connection.executemany(insert, rows)
    connection.close()
    return "sqlite:///foreign.sqlite"


def test_tables_of_apscheduler(foreign_url: str) -> None:
    printed = rota("import", "apscheduler", foreign_url)
    assert (printed.exit_code, 'owner = "apscheduler"' in printed.stdout) == (0, True)
    assert "note: job 7: obj: its state has a crawling.Thing" in printed.stderr
    done = rota("import", "apscheduler", foreign_url, "--task", "crawling:crawl=crawl(url)", "--apply", "--json")
    assert (done.exit_code, json.loads(done.stdout)["counts"]["create"]) == (1, 10)
    assert answer("schedule", "get", "both")["definition"]["cron"] == "0 1 13 * +FRI"
    assert rota("import", "apscheduler", foreign_url, "--table", "x; drop table y").exit_code == 2
    assert rota("import", "apscheduler", foreign_url, "--table", "missing").exit_code == 69
    assert "is no URL" in rota("import", "apscheduler", "foreign.sqlite").stderr


def test_tables_of_django_celery_beat(foreign_url: str) -> None:
    done = rota("import", "celery", foreign_url, "--task", "shop.bill=bill(who)", "--apply", "--json")
    assert (done.exit_code, json.loads(done.stdout)["counts"]["create"]) == (1, 5)
    assert answer("schedule", "get", "bills")["owner"] == "celery"
    from_dump = rota("import", "celery", str(DATA / "django_celery_beat.json"), "--task", "shop.bill=bill(who)")
    from_tables = rota("import", "celery", foreign_url, "--task", "shop.bill=bill(who)")
    assert (
        from_dump.stdout.partition("owner")[2].partition("\n")[2]
        == from_tables.stdout.partition("owner")[2].partition("\n")[2]
    )


def test_a_missing_database() -> None:
    done = rota("import", "celery", "sqlite:///nowhere.sqlite")
    assert (done.exit_code, "there is no database at" in done.stderr) == (69, True)
    assert not Path("nowhere.sqlite").exists()


APP = """
from datetime import timedelta


class Conf:
    timezone = "Europe/Berlin"
    beat_schedule = {"sync": {"task": "shop.sync", "schedule": timedelta(minutes=5), "args": ["all"]}}


class Task:
    def run(self, who: str) -> None: ...


class App:
    conf = Conf()
    tasks = {"shop.sync": Task()}


app = App()
CELERY_BEAT_SCHEDULE = {"other": {"task": "shop.other", "schedule": 30}}
"""


def test_modules_and_files_of_celery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("beatshop.py").write_text(APP)
    Path("broken.py").write_text("1 / 0")
    Path("empty.py").write_text("")
    for source in ("beatshop:app", "beatshop", "beatshop.py"):
        (found,) = answer("import", "celery", source)["schedule"]
        assert found == {"name": "sync", "job": "sync", "payload": {"who": "all"}, "every": "5m"}
    (settings,) = answer("import", "celery", "beatshop:CELERY_BEAT_SCHEDULE")["schedule"]
    assert settings["every"] == "30s"
    for source, why in (("beatshop:nothing", "has no 'nothing'"), ("nowhere", "there is no module 'nowhere'"),
                        ("broken.py", "ZeroDivisionError"), ("empty.py", "has no beat_schedule")):  # fmt: skip
        refused = rota("import", "celery", source)
        assert (refused.exit_code, why in refused.stderr) == (2, True), refused.stderr
    sys.modules.pop("beatshop")


CRON_JOB: dict[str, Any] = {
    "kind": "CronJob",
    "metadata": {"name": "backup"},
    "spec": {
        "schedule": "30 2 * * *",
        "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"image": "x", "command": ["backup"]}]}}}},
    },
}
WORKFLOW: dict[str, Any] = {
    "on": {"schedule": [{"cron": "0 3 * * *"}]}, "jobs": {"one": {"runs-on": "x", "steps": [{"run": "make"}]}}
}  # fmt: skip


@pytest.mark.usefixtures("known_url")
def test_files_are_applied(tmp_path: Path) -> None:
    Path("jobs.yaml").write_text(yaml.safe_dump_all([CRON_JOB, {"kind": "Service"}]))
    workflows = tmp_path / "workflows"
    workflows.mkdir()
    (workflows / "nightly.yml").write_text(yaml.safe_dump(WORKFLOW))
    Path("sync.timer").write_text("[Timer]\nOnCalendar=hourly UTC\n")
    Path("sync.service").write_text("[Service]\nExecStart=/bin/sync\n")
    Path("rq.json").write_text('[{"id": "r", "func_name": "shop.sync", "meta": {"interval": 60}}]')
    for words in (("kubernetes", "jobs.yaml"), ("github", "workflows"), ("systemd", "."), ("rq", "rq.json")):
        assert answer("import", *words, "--apply")["counts"]["create"] == 1
        assert answer("import", *words, "--apply")["counts"]["unchanged"] == 1
    assert answer("schedule", "get", "nightly")["owner"] == "file:workflows"
    assert answer("schedule", "get", "backup")["definition"]["max_attempts"] == 7


def test_what_is_no_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("a: [", "!!python/object/apply:os.system ['touch harmed']", "[" * 5_000):
        Path("x.yaml").write_text(text)
        refused = rota("import", "kubernetes", "x.yaml")
        assert (refused.exit_code, "x.yaml is no YAML" in refused.stderr) == (2, True)
    assert not Path("harmed").exists()
    Path("empty").mkdir()
    assert "has no file that ends in .yml or .yaml" in rota("import", "github", "empty").stderr
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert 'pip install "rota[yaml]"' in rota("import", "kubernetes", "x.yaml").stderr


async def test_tables_are_only_read(sqlite_url: str) -> None:
    store = Store(open_database(sqlite_url))
    await store.migrate()
    found = read_file(file_of(sqlite_url), ["rota_job"])
    assert found == {"rota_job": []}
    await store.close()
