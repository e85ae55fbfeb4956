"""External runs from the command line: shown, completed, failed."""

import asyncio
from pathlib import Path

import pytest

from rota import Context, Rota
from rota.testing import adrain
from tests.support.processes.command_line import answer, rota
from tests.support.wait import until


@pytest.fixture
def waiting(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the id of a run that an external worker has claimed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    assert rota("migrate").exit_code == 0
    return asyncio.run(hand_over(sqlite_url))


async def hand_over(url: str) -> str:
    app = Rota(url)

    @app.job(backoff=["1h"])
    async def ask(ctx: Context) -> object:
        return await ctx.wait_for_external("2h", step="approval")

    async with app.running():
        run = await ask.aenqueue()
        await until_waiting(app, run.id)
    return run.id


async def until_waiting(app: Rota, run_id: str) -> None:
    client = await app.connect()

    async def waits() -> bool:
        return (await client.get(run_id)).state == "waiting"

    await until(waits)


def test_it_is_shown_since_when_until_when_and_under_which_fence(waiting: str) -> None:
    found = answer("run", "get", waiting)
    assert (found["state"], found["fence"]) == ("waiting", 1)
    assert found["wait_since"] < found["wait_until"]
    told = dict(line.split("\t")[:2] for line in rota("run", "get", waiting).stdout.splitlines() if "\t" in line)
    assert told["fence"] == "1"
    assert told["wait_until"] == found["wait_until"]
    explained = answer("explain", waiting)
    assert explained["facts"]["step"] == "approval"
    assert "an external worker to end its step 'approval', under fence 1" in " ".join(explained["words"])
    (listed,) = answer("run", "ls", "--state", "waiting")["items"]
    assert listed["id"] == waiting


def test_it_is_reported_by_a_part_of_its_id(waiting: str) -> None:
    assert "is not JSON" in rota("run", "complete", waiting, "--fence", "1", "--result", "{nope").stderr
    assert rota("run", "complete", waiting).exit_code == 2
    reported = rota("run", "fail", waiting[-12:], "--fence", "1", "--error", "no", "--no-retry")
    assert reported.stdout.split() == [waiting, "failed"]


def test_an_outsider_is_among_the_workers(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    assert rota("migrate").exit_code == 0
    app = Rota(sqlite_url)
    label = app.external("label")

    async def claim() -> str:
        run = await label.aenqueue(image="a.png")
        await adrain(app)
        await (await app.connect()).external.claim("scanner@7")
        await app.aclose()
        return run.id

    run_id = asyncio.run(claim())
    (worker,) = answer("workers", "ls")["items"]
    assert (worker["id"], worker["state"], worker["held"]) == ("scanner@7", "working", 1)
    assert answer("run", "get", run_id)["worker_id"] == "scanner@7"
