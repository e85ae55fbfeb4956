"""Test the clients of one app in several threads, event loops and processes."""

import asyncio
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rota import Config, Job, NotFound, Rota, RunState
from rota.client.client import Client
from rota.errors import BadConfig, Conflict, StillRunning, Unavailable

Crawl = Job[[str, int], str]


def test_making_an_app_connects_to_nothing_and_starts_nothing() -> None:
    before = threading.enumerate()
    app = Rota("postgresql://nobody@127.0.0.1:1/nothing")

    @app.job
    def work() -> None:
        """Never called here."""

    assert threading.enumerate() == before


def test_settings_come_with_the_app_or_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "ROTA_DATABASE_URL", "sqlite:///from-environment.db")
    assert Rota().config.database_url == "sqlite:///from-environment.db"
    assert Rota("sqlite:///given.db", concurrency=3).config.concurrency == 3
    assert Rota(config=Config(port=1)).config.port == 1
    with pytest.raises(BadConfig):
        Rota("mysql://host/db")
    with pytest.raises(BadConfig, match="did you mean 'concurrency'"):
        Rota(concurency=3)


def test_several_threads_share_one_client(app: Rota, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Client] = []
    original = app.open_client

    async def counted() -> Client:
        client = await original()
        opened.append(client)
        return client

    monkeypatch.setattr(app, "open_client", counted)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: crawl.enqueue(f"https://example.com/{n}", 1).id, range(40)))
    assert len(set(made)) == 40
    assert len(opened) == 1
    assert len(app.blocking.list(limit=100)) == 40


def test_a_closed_client_opens_another_at_the_next_call(app: Rota, crawl: Crawl) -> None:
    client = app.blocking
    is_open = [client.is_open]
    first = crawl.enqueue("https://example.com", 1).id
    is_open.append(client.is_open)
    app.close()
    is_open.append(client.is_open)
    app.close()  # again: nothing is open
    assert is_open == [False, True, False]
    assert client.get(first).id == first
    assert app.blocking is client


def test_several_event_loops_have_clients_of_their_own(app: Rota, crawl: Crawl) -> None:
    async def work() -> str:
        first, second = await asyncio.gather(app.connect(), app.connect())
        assert first is second
        made = await crawl.aenqueue("https://example.com", 1)
        await app.aclose()
        return made.id

    with ThreadPoolExecutor(3) as threads:
        made = list(threads.map(lambda _: asyncio.run(work()), range(6)))
    assert {run.id for run in app.blocking.list()} == set(made)


async def test_enqueues_of_one_moment_share_a_transaction(app: Rota, crawl: Crawl) -> None:
    client = await app.connect()
    batches: list[int] = []
    original = client.store.enqueue

    async def counted(runs: list[object]) -> object:
        batches.append(len(runs))
        return await original(runs)  # type: ignore[arg-type]

    client._gatherer._send = counted  # type: ignore[assignment]
    made = await asyncio.gather(*[crawl.aenqueue(f"https://example.com/{n}", 1) for n in range(100)])
    assert len({one.id for one in made}) == 100
    assert sum(batches) == 100
    assert len(batches) < 10
    await app.aclose()


async def test_a_client_can_be_opened_again(app: Rota, crawl: Crawl) -> None:
    await crawl.aenqueue("https://example.com", 1)
    await app.aclose()
    await app.aclose()
    await crawl.aenqueue("https://example.com", 1)
    assert len(await (await app.connect()).list()) == 2
    await app.aclose()


def test_the_blocking_client_can_be_opened_again(app: Rota, crawl: Crawl) -> None:
    crawl.enqueue("https://example.com", 1)
    app.close()
    app.close()
    crawl.enqueue("https://example.com", 1)
    assert len(app.blocking.list()) == 2


async def test_a_connection_that_failed_is_tried_again(tmp_path: os.PathLike[str]) -> None:
    folder = os.path.join(tmp_path, "later")
    app = Rota(f"sqlite:///{folder}/rota.db")
    with pytest.raises(Unavailable):
        await app.connect()
    await asyncio.to_thread(os.mkdir, folder)
    assert await (await app.connect()).list() == []
    await app.aclose()


def test_every_verb_in_plain_code(app: Rota, crawl: Crawl) -> None:
    client = app.blocking
    made = crawl.enqueue("https://example.com", 1)
    assert client.time().tzinfo is not None
    assert [job.name for job in client.jobs()] == ["crawl"]
    assert client.get(made.id[:30]).id == made.id
    assert client.attempts(made.id) == []
    assert [(queue.queue, queue.queued) for queue in client.queues()] == [("default", 1)]
    with pytest.raises(StillRunning):
        client.wait(made.id, "10ms")
    assert client.cancel(made.id, reason="enough", actor="me").state is RunState.CANCELLED
    assert client.wait(made.id).reason == "enough"
    again = client.retry(made.id)
    assert client.get(again.id).retry_of == made.id
    with pytest.raises(Conflict):
        client.retry(again.id)
    assert client.prune() == 0
    with pytest.raises(NotFound):
        client.get("ffffffff")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("connected", [False, True], ids=["before its first use", "after its first use"])
def test_a_forked_child_can_enqueue(app: Rota, crawl: Crawl, connected: bool) -> None:
    expected = {"https://example.com/child", "https://example.com/parent"}
    if connected:
        crawl.enqueue("https://example.com/before", 1)
        expected.add("https://example.com/before")
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            crawl.enqueue("https://example.com/child", 1)
            status = 0
        finally:
            os._exit(status)
    crawl.enqueue("https://example.com/parent", 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert {run.payload["url"] for run in app.blocking.list()} == expected


async def test_an_app_is_started_once(app: Rota) -> None:
    await app.start()
    with pytest.raises(Conflict, match="started already"):
        await app.start()
    await app.stop()
    await app.stop()
    await app.aclose()


def test_a_child_that_changes_its_folder_means_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = Rota("sqlite:///rota.db")

    @app.job
    def noop() -> None: ...

    noop.enqueue()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(elsewhere)
            noop.enqueue()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert len(app.blocking.list()) == 2
    assert list(elsewhere.iterdir()) == []
    app.close()


async def test_a_client_outlives_the_app_that_nobody_kept(sqlite_url: str) -> None:
    client = await Rota(sqlite_url).connect()
    closed: list[bool] = []
    close = client.store.close

    async def noticed() -> None:
        closed.append(True)
        await close()

    client.store.close = noticed  # type: ignore[method-assign]
    gc.collect()
    for _ in range(10):  # what a forgotten generator does at its end takes a few turns of the loop
        await asyncio.sleep(0)
    assert closed == []
    assert not any(queue.queued for queue in await client.queues())
    await client.close()
