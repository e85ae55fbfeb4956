"""Test `examples/worker.mjs`, a worker in another language, against a real server."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rota.app import Rota
from rota.core.access.roles import Role
from rota.store import Store, open_database
from tests.support.processes.node import node
from tests.support.processes.rota_process import ROOT
from tests.support.wait import PATIENCE

SCRIPT = """
import asyncio, sys
from rota import Rota
from rota.server import serve

app = Rota(sys.argv[1], port=0, auth=True, shutdown_grace="2s", reaper="300ms", poll="200ms")
schema = {"type": "object", "properties": {"image": {"type": "string"}}, "required": ["image"]}
app.external("label-images", schema, max_attempts=2, backoff=["100ms"], cancel_grace="20s")
sys.exit(asyncio.run(serve(app, working=False, on_ready=lambda url: print(url, flush=True))))
"""


class Site:
    """A server, and whoever asks it with the role of an operator."""

    def __init__(self, address: str, operator: str, worker_token: str, folder: Path) -> None:
        headers = {"Authorization": f"Bearer {operator}"}
        self.http = httpx2.Client(base_url=f"{address}/api/v1", headers=headers, timeout=PATIENCE)
        self.environment = {"PATH": os.environ["PATH"], "ROTA_URL": address, "ROTA_TOKEN": worker_token}
        self.log = folder / "worker.log"
        self.workers: list[subprocess.Popen[bytes]] = []

    def worker(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            started = subprocess.Popen(
                [node(), ROOT / "examples" / "worker.mjs"], env=self.environment, stdout=log, stderr=log
            )
        self.workers.append(started)
        return started

    def enqueue(self, **payload: Any) -> str:
        answer = self.http.post("/runs", json={"job": "label-images", "payload": {"image": "a.png", **payload}})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def until(self, run_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while not holds(run := self.http.get(f"/runs/{run_id}").json()):
            assert time.monotonic() < deadline, (run, self.log.read_text())
            time.sleep(0.05)
        return run  # type: ignore[no-any-return]


async def tokens(url: str) -> tuple[str, str]:
    store = Store(open_database(url))
    await store.migrate()
    await store.close()
    app = Rota(url)
    made = (await app.connect()).tokens
    secrets = (await made.create("op", Role.OPERATOR)).secret, (await made.create("node", Role.WORKER)).secret
    await app.aclose()
    return secrets


@pytest.fixture
def site(sqlite_url: str, tmp_path: Path) -> Iterator[Site]:
    operator, worker = asyncio.run(tokens(sqlite_url))
    script = tmp_path / "app.py"
    script.write_text(SCRIPT)
    server = subprocess.Popen([sys.executable, script, sqlite_url], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert server.stdout
    site = Site(server.stdout.readline().strip(), operator, worker, tmp_path)
    yield site
    for worker_process in site.workers:
        worker_process.kill()
        worker_process.communicate()
    server.kill()
    server.communicate()
    site.http.close()


def ended(run: dict[str, Any]) -> bool:
    return run["state"] in ("succeeded", "failed", "cancelled", "expired")


def test_it_does_fails_and_obeys(site: Site) -> None:
    site.worker()
    good, wrong, endless = site.enqueue(pages=2), site.enqueue(wrong=True), site.enqueue(pages=1_000)
    done = site.until(good, ended)
    assert (done["state"], done["result"], done["progress"]["summary"]) == (
        "succeeded", {"label": "cat"}, "page 2 of 2",
    )  # fmt: skip
    logged = site.http.get(f"/runs/{good}/logs").json()["items"]
    assert [line["text"] for line in logged] == ["looked at a.png, page 1", "looked at a.png, page 2"]
    failed = site.until(wrong, ended)
    assert (failed["state"], failed["attempt"], failed["error"]["message"]) == ("failed", 2, "a.png is no picture")
    site.until(endless, lambda run: run["state"] == "running" and run["progress"] is not None)
    assert site.http.post(f"/runs/{endless}/cancel").json()["state"] == "cancelling"
    assert site.until(endless, ended)["state"] == "cancelled"
    (attempt,) = site.http.get(f"/runs/{endless}/attempts").json()["items"]
    assert attempt["outcome"] == "cancelled"


def test_it_ends_what_it_has_when_it_is_told_to_stop(site: Site) -> None:
    worker = site.worker()
    mine = site.enqueue(pages=8)
    # A run is running before the worker has the answer to its claim; whoever stops then leaves it to its lease.
    site.until(mine, lambda run: run["state"] == "running" and run["progress"] is not None)
    worker.terminate()
    assert worker.wait(PATIENCE) == 0, site.log.read_text()
    assert site.http.get(f"/runs/{mine}").json()["state"] == "succeeded"
    later = site.enqueue()
    time.sleep(1.5)  # what waited for it at the server has seen that it is gone
    assert site.http.get(f"/runs/{later}").json()["state"] == "queued"


def test_one_that_dies_is_replaced(site: Site) -> None:
    first = site.worker()
    run_id = site.enqueue(pages=15)
    site.until(run_id, lambda run: run["state"] == "running" and run["progress"] is not None)
    first.kill()
    site.worker()
    done = site.until(run_id, ended)
    assert (done["state"], done["attempt"]) == ("succeeded", 2)
