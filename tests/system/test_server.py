"""Test a server as a real process: start, answers, graceful stop, and clear errors at start."""

import asyncio
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from rota.app import Rota
from rota.cli.servers import example_app
from rota.client.client import Order
from rota.config import load_config
from rota.errors import BadConfig, Unavailable
from rota.server import serve
from rota.store import open_database
from rota.store.store import Store
from tests.support.databases.postgres import PostgresCluster
from tests.support.wait import PATIENCE, wait_for

SCRIPT = """
import asyncio, sys, time
from rota import Rota
from rota.errors import RotaError
from rota.server import serve

app = Rota(sys.argv[1], port=0, shutdown_grace=sys.argv[2], start_wait=sys.argv[3])

@app.job
def stubborn(seconds: float) -> str:
    time.sleep(seconds)
    return "done"

@app.job
def quick() -> str:
    return "done"

try:
    sys.exit(asyncio.run(serve(app, on_ready=lambda url: print(url, flush=True))))
except RotaError as error:
    print(error, flush=True)
    sys.exit(error.exit_code)
"""

Start = Callable[..., "Server"]


class Server:
    def __init__(self, folder: Path, url: str, grace: str, start_wait: str) -> None:
        script = folder / "app.py"
        script.write_text(SCRIPT)
        self.errors = folder / "errors.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, script, url, grace, start_wait],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
            )

    def first_line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    servers: list[Server] = []

    def start(url: str, grace: str = "5s", start_wait: str = "0s") -> Server:
        servers.append(Server(tmp_path, url, grace, start_wait))
        return servers[-1]

    yield start
    for server in servers:
        server.process.kill()
        server.process.communicate()


def got(address: str) -> httpx2.Response:
    return httpx2.get(address, timeout=PATIENCE)


def enqueue(address: str, job: str, **payload: object) -> str:
    answer = httpx2.post(f"{address}/api/v1/runs", json={"job": job, "payload": payload}, timeout=PATIENCE)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def until_state(address: str, run: str, state: str) -> None:
    wait_for(lambda: got(f"{address}/api/v1/runs/{run}").json()["state"] == state)


async def state_of(url: str, run: str) -> str:
    app = Rota(url)
    client = await app.connect()
    state = (await client.get(run)).state
    await app.aclose()
    return state.value


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_stops_in_order(start: Start, sqlite_url: str, number: signal.Signals) -> None:
    server = start(sqlite_url)
    address = server.first_line()
    assert got(f"{address}/readyz").json() == {"status": "ready"}
    assert got(address).status_code == 200
    until_state(address, enqueue(address, "quick"), "succeeded")
    server.process.send_signal(number)
    assert server.exit_code() == 0


async def test_a_handler_may_finish_within_the_grace(start: Start, sqlite_url: str) -> None:
    server = start(sqlite_url, "10s")
    address = server.first_line()
    run = enqueue(address, "stubborn", seconds=1.0)
    until_state(address, run, "running")
    server.process.terminate()
    assert server.exit_code() == 0
    assert await state_of(sqlite_url, run) == "succeeded"


async def test_what_outlasts_the_grace_is_handed_back(start: Start, sqlite_url: str) -> None:
    server = start(sqlite_url, "500ms")
    address = server.first_line()
    run = enqueue(address, "stubborn", seconds=60.0)
    until_state(address, run, "running")
    began = time.monotonic()
    server.process.terminate()
    assert server.exit_code() == 0
    assert time.monotonic() - began < 6
    assert await state_of(sqlite_url, run) == "queued"


def test_whoever_listens_does_not_hold_it_up(start: Start, sqlite_url: str) -> None:
    """Open streams and a claim that waits end with the server, and so does it, in time and without a complaint."""
    server = start(sqlite_url, "5s")
    address = server.first_line()
    claim = b'{"worker": "a", "wait": "30s"}'
    asked = [
        b"GET /api/v1/stream?topics=runs HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /api/v1/worker/claim HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(claim), claim),
    ]
    port = int(address.rpartition(":")[2])
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in asked]
    for connection, request in zip(sockets, asked, strict=True):
        connection.sendall(request)
    assert sockets[0].recv(12) == b"HTTP/1.1 200"
    began = time.monotonic()
    server.process.terminate()
    assert server.exit_code() == 0
    assert time.monotonic() - began < 8
    assert server.errors.read_text() == ""
    for connection in sockets:
        connection.settimeout(PATIENCE)
        while connection.recv(65_536):  # to its end: nobody is left hanging
            pass
        connection.close()


def test_a_request_that_is_under_way_is_answered(start: Start, sqlite_url: str) -> None:
    """Its body arrives when the server was told to stop already; new callers are let in no more."""
    server = start(sqlite_url, "5s")
    port = int(server.first_line().rpartition(":")[2])
    body = b'{"job": "quick", "delay": "1h"}'
    head = b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
        time.sleep(0.3)
        server.process.terminate()
        _until_refused(port)
        connection.sendall(body[5:])
        told = connection.recv(65_536)
        assert told.startswith(b"HTTP/1.1 201"), told
        while connection.recv(65_536):
            pass
    assert server.exit_code() == 0


def _until_refused(port: int) -> None:
    def refused() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()
        except ConnectionRefusedError:
            return True
        return False

    wait_for(refused, complaint=lambda: "it still listens")


def test_a_second_signal_stops_at_once(start: Start, sqlite_url: str) -> None:
    server = start(sqlite_url, "600s")
    address = server.first_line()
    until_state(address, enqueue(address, "stubborn", seconds=600.0), "running")
    server.process.terminate()
    time.sleep(0.5)
    assert server.process.poll() is None
    server.process.terminate()
    assert server.exit_code() == 130


def test_it_stops_in_time_while_the_database_is_away(start: Start, own_postgres_cluster: PostgresCluster) -> None:
    url = own_postgres_cluster.create_database()
    migrate(url)
    server = start(url, "2s")
    address = server.first_line()
    until_state(address, enqueue(address, "stubborn", seconds=60.0), "running")
    own_postgres_cluster.kill9()
    assert got(f"{address}/healthz").status_code == 200
    assert got(f"{address}/readyz").status_code == 503
    began = time.monotonic()
    server.process.terminate()
    assert server.exit_code() == 0
    assert time.monotonic() - began < 10


def migrate(url: str) -> None:
    async def apply() -> None:
        store = Store(open_database(url))
        await store.migrate()
        await store.close()

    asyncio.run(apply())


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("sqlite:///no/such/folder/rota.db", 69, "cannot open"),
        ("postgresql://nobody@127.0.0.1:1/nothing", 69, "PostgreSQL"),
    ],
)
def test_a_typo_in_the_url_is_seen(start: Start, url: str, code: int, words: str) -> None:
    server = start(url)
    assert words in server.first_line()
    assert server.exit_code() == code


def test_a_database_without_tables_is_refused_if_nothing_may_be_waited_for(start: Start, new_postgres_url: str) -> None:
    server = start(new_postgres_url)
    assert "run `rota migrate`" in server.first_line()
    assert server.exit_code() == 78


def test_a_migration_is_waited_for(start: Start, new_postgres_url: str) -> None:
    server = start(new_postgres_url, start_wait="60s")
    wait_for(lambda: "waiting up to 60s (start_wait)" in server.errors.read_text())
    migrate(new_postgres_url)
    assert server.first_line().startswith("http://")


def test_a_supervisor_starts_again_what_waited_in_vain_for_a_migration(start: Start, new_postgres_url: str) -> None:
    server = start(new_postgres_url, start_wait="1s")
    assert "run `rota migrate`" in server.first_line()
    assert server.exit_code() == 69  # the unit files name 78 as a reason to stay down


def test_a_database_that_starts_later_is_waited_for(start: Start, own_postgres_cluster: PostgresCluster) -> None:
    url = own_postgres_cluster.create_database()
    migrate(url)
    own_postgres_cluster.stop()
    server = start(url, start_wait="60s")
    wait_for(lambda: "waiting up to 60s (start_wait)" in server.errors.read_text())
    own_postgres_cluster.start()
    assert server.first_line().startswith("http://")


def test_a_wrong_database_name_is_not_waited_for(start: Start, own_postgres_cluster: PostgresCluster) -> None:
    server = start(own_postgres_cluster.url + "_that_is_not_there", start_wait="600s")
    assert "no database of that name" in server.first_line()
    assert server.exit_code() == 78


def test_a_signal_ends_the_wait(start: Start) -> None:
    server = start("postgresql://nobody@127.0.0.1:1/nothing", start_wait="600s")
    wait_for(lambda: "waiting up to 600s" in server.errors.read_text())
    server.process.terminate()
    assert server.exit_code() == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])
async def test_other_machines_are_not_let_in(sqlite_url: str, host: str) -> None:
    with pytest.raises(BadConfig, match="everybody could do everything"):
        await serve(Rota(sqlite_url, host=host, port=0))


async def test_a_taken_port_is_named(sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port} is in use"):
            await serve(Rota(sqlite_url, port=port))


async def test_it_can_run_without_http_or_without_a_worker(sqlite_url: str) -> None:
    for options in ({"http": False}, {"working": False}):
        app = Rota(sqlite_url, port=0)
        addresses: list[str] = []

        def ready(address: str, addresses: list[str] = addresses) -> None:
            addresses.append(address)
            signal.raise_signal(signal.SIGTERM)

        assert await serve(app, on_ready=ready, **options) == 0  # type: ignore[arg-type]
        assert len(addresses) == 1


async def test_the_example_has_something_to_show(sqlite_url: str) -> None:
    app = example_app.make(load_config({"database_url": sqlite_url}))
    client = await app.connect()
    await example_app.seed(client)
    sown = await client.list()
    await example_app.seed(client)
    assert len(await client.list()) == len(sown)
    assert {run.job for run in sown} == set(app.registry.known())
    wanted = await client.enqueue(Order("report", {"month": 3}))
    await app.start()
    assert (await client.wait(wanted.id, "60s")).state == "succeeded"
    while len(await client.list()) <= len(sown) + 1:
        await asyncio.sleep(0.02)
    await app.stop()
    await app.aclose()
