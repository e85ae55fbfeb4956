"""`rota notification`, and schedules that follow another job, as people type them."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rota import Rota
from rota.cli import root
from rota.cli.schedules.simulate import _why_none
from rota.core.calendar.triggers import following
from rota.core.jobs.job import JobDefinition
from rota.core.runs.run import Run, RunFilter
from rota.core.schedules.schedule import define
from rota.store import Store, open_database
from tests.support.jobs.stored_jobs import save_jobs_of

LOAD = JobDefinition(name="load")


@pytest.fixture
async def url(sqlite_url: str) -> str:
    app = Rota(sqlite_url)
    for name in ("extract", "load"):

        async def work() -> None: ...

        app.job(name=name)(work)
    await save_jobs_of(app)
    return sqlite_url


def rota(url: str, *words: str, code: int = 0, given: str | None = None, **environment: str) -> Result:
    result = CliRunner(env=environment).invoke(root, [*words, "--database", url], input=given)
    assert result.exit_code == code, result.output
    return result


def test_without_a_secret_no_variable_is_missed(url: str) -> None:
    create = ("notification", "create", "ops", "--to", "https://example.com")
    assert rota(url, *create).stderr == ""
    assert (
        "HOOK_SECRET is not set here"
        in rota(url, *create[:2], "chat", *create[3:], "--secret", "env:HOOK_SECRET").stderr
    )


def test_made_shown_and_removed(url: str) -> None:
    rota(
        url,
        "notification",
        "create",
        "ops",
        "--to",
        "https://me:hunter2@example.com/?k=hunter2",
        "--secret",
        "-",
        given="hunter2",
    )
    rota(
        url,
        "notification",
        "create",
        "mail",
        "--to",
        "mailto:a@example.com",
        "--job",
        "load",
        "--on",
        "success",
        "--json",
    )
    listed = rota(url, "notification", "ls", "--json").stdout
    items = {item["name"]: item for item in json.loads(listed)["items"]}
    assert items["ops"]["secret"] == "***"
    assert items["mail"]["jobs"] == ["load"]
    shown = rota(url, "notification", "get", "ops").output + rota(url, "notification", "ls").output
    assert "hunter2" not in listed + shown
    assert "everything" in shown
    rota(url, "notification", "rm", "ops", code=2)  # nobody to ask
    assert json.loads(rota(url, "notification", "rm", "ops", "--yes", "--json").stdout) == {
        "name": "ops",
        "deleted": True,
    }
    rota(url, "notification", "get", "ops", code=4)
    audit = rota(url, "audit", "--json").stdout
    assert "dropped" in audit
    assert "hunter2" not in audit


def test_what_is_refused(url: str) -> None:
    said = rota(url, "notification", "create", "x", "--to", "https://example.com", "--secret", "hunter2", code=2).output
    assert "env:NAME" in said
    assert "hunter2" not in said
    note = rota(
        url, "notification", "create", "x", "--to", "https://example.com", "--secret", "env:NOT_SET_HERE"
    ).output
    assert "NOT_SET_HERE is not set here" in note
    note = rota(url, "notification", "create", "z", "--to", "https://example.com", "--job", "lod").output
    assert "there is no job named lod yet" in note
    rota(url, "notification", "create", "x", "--to", "https://example.com", "--on", "success", code=6)
    said = rota(url, "notification", "create", "y", "--to", "https://example.com", "--on", "fail", code=2).output
    assert "did you mean 'failure'" in said


def test_a_test_that_cannot_be_sent(url: str) -> None:
    rota(url, "notification", "create", "x", "--to", "http://127.0.0.1:1/?k=hunter2")
    said = rota(url, "notification", "test", "x", code=69).output
    assert "127.0.0.1 is loopback" in said
    assert "hunter2" not in said


def test_a_schedule_that_follows(url: str) -> None:
    rota(url, "schedule", "create", "after", "load", "--following", "extract", "--on", "end", "--delay", "5m")
    assert "after each end of extract" in rota(url, "schedule", "get", "after").output
    assert json.loads(rota(url, "schedule", "preview", "after", "--json").stdout)["fires"] == []
    definition = define(LOAD, following("extract"), {}, name="after", now=0)
    assert _why_none(definition) == "it has no times of its own: it runs after each success of extract"
    rota(url, "schedule", "simulate", "after", "--json")
    document = json.loads(rota(url, "schedule", "get", "after", "--json").stdout)
    assert document["state"] == "active"
    said = rota(url, "schedule", "create", "ring", "extract", "--following", "load", code=2).output
    assert "load → extract → load" in said
    said = rota(url, "schedule", "create", "x", "load", "--following", "extrakt", code=4).output
    assert "did you mean 'extract'" in said
    rota(url, "schedule", "update", "after", "--on", "failure")
    assert "after each failure of extract" in rota(url, "schedule", "ls").output


def test_in_a_file(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('owner = "me"\n[[schedule]]\nname = "after"\njob = "load"\nfollowing = "extract"\non = "failure"\n')
    rota(url, "schedule", "apply", str(file), "--yes")
    assert "after each failure of extract" in rota(url, "schedule", "get", "after").output
    rota(url, "schedule", "plan", str(file), "--exit-code")


def test_a_run_says_which_one_it_follows(url: str) -> None:
    rota(url, "schedule", "create", "after", "load", "--following", "extract", "--on", "end")
    first = rota(url, "run", "enqueue", "extract").output.strip()
    rota(url, "run", "cancel", first)

    async def deliver() -> Run:
        store = Store(open_database(url))
        await store.signals.deliver(100)
        (run,) = await store.list_runs(RunFilter(job="load"), 10)
        await store.close()
        return run

    run = asyncio.run(deliver())
    assert f"run {first} of extract was cancelled" in rota(url, "run", "get", run.id).output
    assert "messenger" in rota(url, "run", "events", run.id).output
