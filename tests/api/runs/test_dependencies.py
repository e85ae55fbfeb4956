"""Dependent runs, on the command line and over REST."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rota.api import asgi
from rota.app import Rota
from tests.support.jobs.stored_jobs import save_jobs_of
from tests.support.processes.command_line import answer, rota


def app_on(url: str) -> Rota:
    app = Rota(url)

    @app.job
    async def greet(name: str = "you") -> str:
        return f"hello {name}"

    return app


async def introduce(url: str) -> None:
    app = app_on(url)
    await save_jobs_of(app)


@pytest.fixture
def known_url(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", database_url)
    asyncio.run(introduce(database_url))
    return database_url


def related(id: str, on: str = "success", otherwise: str = "skip", state: str = "queued") -> dict[str, Any]:
    return {"id": id, "job": "greet", "state": state, "result": None, "on": on, "otherwise": otherwise, "inputs": []}


@pytest.mark.usefixtures("known_url")
def test_show_and_explain_tell_who_follows_whom() -> None:
    first, second = (answer("run", "enqueue", "greet")["id"] for _ in range(2))
    both = answer("run", "enqueue", "greet", "--after", f"{first[-12:]}, {second}")
    assert both["state"] == "scheduled"
    last = answer("run", "enqueue", "greet", "--after", both["id"], "--after", first, "--otherwise", "cancel")
    anyway = answer("run", "enqueue", "greet", "--after", both["id"], "--after-any-end")
    assert answer("run", "parents", both["id"])["items"] == [related(first), related(second)]
    assert answer("run", "children", both["id"])["items"] == [
        related(last["id"], "success", "cancel", "scheduled"),
        related(anyway["id"], "end", "skip", "scheduled"),
    ]
    assert f"after\t{first}, {second}\n" in rota("run", "get", both["id"]).stdout
    words = rota("explain", both["id"]).stdout
    assert f"waits for the success of runs {first}, {second}." in words
    assert f"Runs {last['id']}, {anyway['id']} wait for it." in words
    assert answer("run", "cancel", second)["state"] == "cancelled"
    states = [answer("run", "get", run["id"])["state"] for run in (both, last, anyway)]
    assert states == ["skipped", "cancelled", "queued"]
    assert f"run {second} was cancelled" in rota("explain", both["id"]).stdout
    assert "policy:dependency" in rota("run", "events", both["id"]).stdout


@pytest.mark.usefixtures("known_url")
@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["--after", "beef"], 4, "there is no run 'beef'"),
        (["--after-any-end"], 2, "--after-any-end needs --after"),
        (["--otherwise", "cancel"], 2, "--otherwise needs --after"),
        (["--after", "beef", "--after-any-end", "--otherwise", "skip"], 2, "not both"),
        (["--after", "nobody"], 2, "has the ref 'nobody'"),
        (["--input", "name=beef"], 4, "there is no run 'beef'"),
        (["--input", "name"], 2, "is not ARGUMENT=ID"),
        (["--input", "nam=beef"], 2, "did you mean 'name'"),
        (["--input", "name=beef", "--input", "name=dead"], 2, "gives 'name' twice"),
    ],
)
def test_what_cannot_be_followed(given: list[str], code: int, words: str) -> None:
    done = rota("run", "enqueue", "greet", *given)
    assert done.exit_code == code
    assert words in done.stderr
    assert answer("run", "ls")["items"] == []


@pytest.fixture
async def http(database_url: str) -> Any:
    await introduce(database_url)
    app = app_on(database_url)
    transport = httpx2.ASGITransport(asgi(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client
    await app.aclose()


async def test_over_rest(http: httpx2.AsyncClient) -> None:
    runs = [
        {"job": "greet", "ref": "last", "after": ["first", {"run": "other", "on": "end"}]},
        {"job": "greet", "ref": "first"},
        {"job": "greet", "ref": "other"},
    ]
    last, first, _ = (await http.post("/api/v1/runs", json={"runs": runs})).json()["items"]
    assert (last["state"], first["state"]) == ("scheduled", "queued")
    alone = await http.post("/api/v1/runs", json={"job": "greet", "after": [first["id"]]})
    assert (alone.status_code, alone.json()["state"]) == (201, "scheduled")
    await http.post(f"/api/v1/runs/{first['id']}/cancel")
    assert (await http.get(f"/api/v1/runs/{last['id']}")).json()["state"] == "skipped"


@pytest.mark.usefixtures("known_url")
def test_results_as_arguments_on_the_command_line() -> None:
    first = answer("run", "enqueue", "greet")["id"]
    taking = answer("run", "enqueue", "greet", "--input", f"name={first[-12:]}")
    assert (taking["state"], taking["payload"]) == ("scheduled", {})
    assert answer("run", "parents", taking["id"])["items"] == [{**related(first), "inputs": ["name"]}]
    assert f"It takes results as arguments: name from run {first}." in rota("explain", taking["id"]).stdout


async def test_results_as_arguments_over_rest(http: httpx2.AsyncClient) -> None:
    runs = [{"job": "greet", "ref": "first"}, {"job": "greet", "inputs": {"name": "first"}}]
    first, last = (await http.post("/api/v1/runs", json={"runs": runs})).json()["items"]
    (parent,) = (await http.get(f"/api/v1/runs/{last['id']}/parents")).json()["items"]
    assert (parent["id"], parent["inputs"]) == (first["id"], ["name"])
    twice = {"job": "greet", "payload": {"name": "Ada"}, "inputs": {"name": first["id"]}}
    refused = await http.post("/api/v1/runs", json=twice)
    assert (refused.status_code, refused.json()["pointer"]) == (422, "#/payload/name")


async def test_a_ring_over_rest(http: httpx2.AsyncClient) -> None:
    runs = [{"job": "greet", "ref": "a", "after": ["b"]}, {"job": "greet", "ref": "b", "after": ["a"]}]
    refused = await http.post("/api/v1/runs", json={"runs": runs})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    assert "a → b → a" in refused.json()["detail"]
    unknown = await http.post("/api/v1/runs", json={"job": "greet", "after": ["0196f0a0-0000-7000-8000-000000000001"]})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown-run")
