"""Restricted runs and replicas from the command line."""

import asyncio
from pathlib import Path

import pytest

from rota.app import Rota
from rota.client.client import Order
from rota.testing import drain
from tests.support.processes.command_line import answer, rota


@pytest.fixture
def app(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rota:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    app = Rota(worker_labels="gpu,zone=eu", version="1.4")
    app.job(name="train", only_workers=["gpu-1"])(lambda: None)
    app.job(name="install", replicas=2)(lambda: 7)
    return app


def enqueued(app: Rota, job: str) -> str:
    run = app.blocking.enqueue(Order(job, {}))
    drain(app)
    return run.id


def test_a_run_is_restricted_to_some_workers_and_to_none(app: Rota) -> None:
    run = enqueued(app, "train")
    assert answer("run", "restrict", run, "--only-workers", "gpu-2, drain")["state"] == "queued"
    drain(app)
    assert answer("run", "get", run)["state"] == "succeeded"
    other = enqueued(app, "train")
    assert rota("run", "restrict", other, "--anyone").exit_code == 0
    drain(app)
    assert answer("run", "get", other)["state"] == "succeeded"
    app.close()


@pytest.mark.parametrize("options", [(), ("--anyone", "--only-workers", "a"), ("--only-workers", " , ")])
def test_what_means_nothing_is_refused(app: Rota, options: tuple[str, ...]) -> None:
    run = enqueued(app, "train")
    assert rota("run", "restrict", run, *options).exit_code == 2
    app.close()


def test_a_run_is_shown_with_its_replicas(app: Rota) -> None:
    run = enqueued(app, "install")
    assert answer("run", "get", run)["state"] == "waiting"
    replicas = answer("run", "replicas", run)["items"]
    assert [(one["worker"], one["state"]) for one in replicas] == [("drain", "succeeded"), (None, "queued")]
    listed = answer("run", "ls", "--parent", run[-12:])["items"]
    assert {one["id"] for one in listed} == {one["run_id"] for one in replicas}
    replica = answer("run", "get", replicas[0]["run_id"])
    assert (replica["parent_id"], replica["result"]) == (run, 7)
    assert answer("run", "replicas", replica["id"])["items"] == []
    app.close()


def test_workers_are_shown_with_their_labels(app: Rota) -> None:
    async def beat() -> None:
        async with app.running(name="gpu-1"):
            shown = await asyncio.to_thread(answer, "workers", "get", "gpu-1")
            assert (shown["labels"], shown["app_version"]) == (["gpu", "zone=eu"], "1.4")
            listed = await asyncio.to_thread(rota, "workers", "ls")
            assert "gpu,zone=eu" in listed.stdout

    enqueued(app, "install")
    asyncio.run(beat())
    app.close()
