"""Test a live SQLite file that others open, close, delete or overwrite with a backup; then kill -9.

What was acknowledged is there, or the process has said that it is not.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rota import Unavailable
from tests.support.processes.rota_process import Processes, RotaProcess
from tests.support.wait import until
from tests.system.site import Site, connected

# Enqueues one run after the other, and says what it was answered.
PRODUCER = """
import asyncio, logging, os, sqlite3, sys
from contextlib import closing
from rota.errors import Unavailable
from rota.store import open_store
from tests.support.runs.runs import put

logging.basicConfig(format="logged %(name)s: %(message)s")
path, library = sys.argv[1:]

def look():
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("select count(*) from rota_run").fetchall()

async def main():
    store = await open_store(f"sqlite:///{path}")
    while True:
        if os.path.exists(f"{path}.rest"):
            print("rests", flush=True)
            while os.path.exists(f"{path}.rest"):
                await asyncio.sleep(0.01)
        if library == "sqlite3":
            look()
        try:
            print("put", await put(store, "quick"), "!", flush=True)
        except Unavailable as error:
            print("refused", type(error).__name__, error, flush=True)
        await asyncio.sleep(0.005)

asyncio.run(main())
"""


@pytest.fixture
def path(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Processes with no other user of the file: otherwise the last to close it would not delete the log."""
    with Processes(tmp_path) as processes:
        yield processes


def produce(processes: Processes, path: Path, library: str = "rota") -> RotaProcess:
    return processes.python("-c", PRODUCER, str(path), library, environment={}).until_said("put ")


def acknowledged(lines: str) -> list[str]:
    return [line.split()[1] for line in lines.splitlines() if line.startswith("put ") and line.endswith("!")]


async def has_put(process: RotaProcess, more: int) -> None:
    wanted = len(acknowledged(process.log)) + more
    await until(lambda: len(acknowledged(process.log)) >= wanted)


async def missing(path: Path, runs: list[str]) -> list[str]:
    """Return which of these runs a new connection does not find."""
    async with connected(f"sqlite:///{path}") as client:
        found = await asyncio.gather(*[client.get(run) for run in runs], return_exceptions=True)
    return [run for run, answer in zip(runs, found, strict=True) if isinstance(answer, BaseException)]


def backed_up(path: Path) -> Path:
    """Back up with SQLite's own means, from another process, as the guide says."""
    copy = path.with_name("backup.db")
    in_another_process(f"vacuum into '{copy}'", path)
    return copy


def in_another_process(sql: str, path: Path) -> None:
    program = "import apsw, sys; apsw.Connection(sys.argv[1]).execute(sys.argv[2]).fetchall()"
    subprocess.run([sys.executable, "-c", program, str(path), sql], check=True)


def cp(copy: Path, path: Path) -> None:
    subprocess.run(["cp", str(copy), str(path)], check=True)


def mv(copy: Path, path: Path) -> None:
    os.replace(copy, path)


def while_they_stand_still(producers: list[RotaProcess], act: Callable[[], object]) -> list[str]:
    """Pause all producers for the block; yield what each had printed by then."""
    for producer in producers:
        producer.pause()
    act()
    said = [producer.log for producer in producers]
    for producer in producers:
        producer.resume()
    return said


@asynccontextmanager
async def at_rest(producer: RotaProcess, path: Path) -> AsyncIterator[None]:
    """Between two of its transactions, and when what it has written is carried over into the file."""
    rest = Path(f"{path}.rest")
    await asyncio.to_thread(rest.touch)
    await asyncio.to_thread(producer.until_said, "rests")
    await asyncio.to_thread(time.sleep, 1)
    yield
    await asyncio.to_thread(rest.unlink)


@pytest.mark.skipif(sys.platform != "linux", reason="no locks of open file descriptions here")
@pytest.mark.parametrize("count", [1, 2])
async def test_pythons_sqlite3_in_the_same_process_costs_no_run(processes: Processes, path: Path, count: int) -> None:
    producers = [produce(processes, path, "sqlite3") for _ in range(count)]
    for producer in producers:
        await has_put(producer, 60)
    for producer in producers:
        producer.kill()
    runs = [run for producer in producers for run in acknowledged(producer.log)]
    assert await missing(path, runs) == []
    assert "refused" not in "".join(producer.log for producer in producers)


async def test_nothing_is_acknowledged_after_the_file_was_deleted(processes: Processes, path: Path) -> None:
    producer = produce(processes, path)
    copy = backed_up(path)
    await has_put(producer, 5)

    def delete() -> None:
        for ending in ("", "-wal", "-shm"):
            Path(f"{path}{ending}").unlink()

    (said,) = while_they_stand_still([producer], delete)
    producer.until_said("refused FileReplaced").until_said("logged rota.store: ")
    await asyncio.to_thread(producer.until_said, "refused Unavailable")
    assert len(acknowledged(producer.log)) - len(acknowledged(said)) <= 1, "but what was committed before"
    mv(copy, path)
    said = producer.log
    await has_put(producer, 20)
    producer.kill()
    assert await missing(path, acknowledged(producer.log.removeprefix(said))) == []


@pytest.mark.skipif(sys.platform != "linux", reason="overwriting is not noticed here")
async def test_nothing_is_acknowledged_when_a_backup_is_copied_over_the_file(processes: Processes, path: Path) -> None:
    """By one process, while it rests: a copy in the midst of a checkpoint, or after one of others, nobody can tell."""
    producer = produce(processes, path)
    before = acknowledged(producer.log)
    copy = backed_up(path)
    await has_put(producer, 300)  # more than a page of the file is another one since
    async with at_rest(producer, path):
        cp(copy, path)
        said = producer.log
    await asyncio.to_thread(producer.until_said, "refused FileReplaced")
    await has_put(producer, 20)
    producer.kill()
    assert "logged rota.store: " in producer.log
    assert acknowledged(producer.log.removeprefix(said).partition("refused FileReplaced")[0]) == []
    since = acknowledged(producer.log.rpartition("refused FileReplaced")[2])
    assert await missing(path, [*before, *since]) == []


async def test_nothing_is_acknowledged_silently_when_a_backup_is_moved_over_the_file(
    processes: Processes, path: Path
) -> None:
    producers = [produce(processes, path) for _ in range(2)]
    before = [run for producer in producers for run in acknowledged(producer.log)]
    copy = backed_up(path)
    for producer in producers:
        await has_put(producer, 300)  # more than a page of the file is another one since
    in_another_process("select 1 from rota_run; pragma wal_checkpoint", path)
    said = while_they_stand_still(producers, lambda: mv(copy, path))
    for producer in producers:
        await asyncio.to_thread(producer.until_said, "refused FileReplaced")
        await has_put(producer, 20)
        assert "logged rota.store: " in producer.log
        producer.kill()
    since = [run for producer in producers for run in acknowledged(producer.log.rpartition("refused FileReplaced")[2])]
    assert await missing(path, [*before, *since]) == []
    for producer, words in zip(producers, said, strict=True):
        until_then = producer.log.removeprefix(words).partition("refused FileReplaced")[0]
        assert len(acknowledged(until_then)) <= 1, "but what was committed before"


async def test_a_worker_goes_on_with_what_was_put_in_the_place_of_its_file(sqlite_site: Site, path: Path) -> None:
    copy = backed_up(path)
    worker = sqlite_site.worker()
    (run,) = await sqlite_site.enqueue_many(1, "quick", number=1)
    await sqlite_site.all_succeed([run])
    mv(copy, path)

    async def enqueued() -> bool:
        try:
            await sqlite_site.enqueue("quick", number=2)
        except Unavailable:
            return False
        return True

    await until(enqueued)
    run = await sqlite_site.enqueue("quick", number=3)
    await sqlite_site.all_succeed([run])
    assert worker.exit_code is None
    assert "it was replaced by another file" in worker.log
