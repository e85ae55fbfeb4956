"""Works for an hour at a moderate rate, and tells what grows: memory, descriptors, threads, WAL, tables, indexes, logs.

A server and workers run a mixed load on a database of their own; runs are kept for a minute, so that everything has a
size at which it rests. After the first quarter of the time nothing may grow: the last quarter is compared with the
second. The exit code is 1 if something does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import apsw
import asyncpg
import msgspec

from rota import Client, Config, Unavailable
from rota.cli.terminal.format import chart
from rota.store import open_store
from tests.endurance.jobs import app, draw
from tests.endurance.samples import LEAST, Series, growing, of_process, record
from tests.support.databases.postgres import PostgresCluster
from tests.support.processes.rota_process import Processes, RotaProcess
from tests.support.servers.ports import free_port
from tests.system.site import migrate

APP = "tests.endurance.jobs:app"
SETTINGS = {"ROTA_JANITOR": "15s", "ROTA_POLL": "500ms"}
MB = 1024 * 1024
_SIZES = """
select relname::text, pg_total_relation_size(oid)::float8 from pg_class
where relkind = 'r' and relname like 'rota!_%' escape '!'
"""
_WAL = "select coalesce(sum(size), 0)::float8 from pg_ls_waldir()"
_WIDTH = 40


class Place(msgspec.Struct):
    """Database under load: its URL, and how to measure it."""

    url: str
    path: Path | None = None

    async def sizes(self) -> Mapping[str, float]:
        """Return MB of each table with its indexes; of an SQLite file, which has no others, MB in use."""
        if self.path is not None:
            return await asyncio.to_thread(self._used)
        connection = await asyncpg.connect(self.url)
        try:
            rows = await connection.fetch(_SIZES)
        finally:
            await connection.close()
        return {f"table {name}": size / MB for name, size in rows}

    def _used(self) -> Mapping[str, float]:
        with contextlib.closing(apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            pages, free, size = (_pragma(connection, name) for name in ("page_count", "freelist_count", "page_size"))
        return {"file": pages * size / MB, "file in use": (pages - free) * size / MB}

    async def wal(self) -> float:
        if self.path is not None:
            wal = Path(f"{self.path}-wal")
            return await asyncio.to_thread(lambda: wal.stat().st_size / MB if wal.exists() else 0.0)
        connection = await asyncpg.connect(self.url)
        try:
            return float(await connection.fetchval(_WAL)) / MB
        finally:
            await connection.close()


def _pragma(connection: apsw.Connection, name: str) -> int:
    return int(connection.pragma(name))


@contextlib.contextmanager
def place_of(database: str, folder: Path) -> Iterator[Place]:
    if database == "sqlite":
        yield Place(f"sqlite:///{folder / 'endurance.db'}", folder / "endurance.db")
        return
    with PostgresCluster(settings={"max_wal_size": "128MB", "min_wal_size": "32MB"}) as cluster:
        yield Place(cluster.create_database())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="endurance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="(%(default)s)")
    parser.add_argument("--rate", type=float, default=20.0, help="runs enqueued a second (%(default)s)")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="postgres")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--report", type=Path, default=Path("endurance.json"), metavar="FILE", help="(%(default)s)")
    wanted = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="rota-endurance-") as folder,
        place_of(wanted.database, Path(folder)) as place,
        Processes(Path(folder), tells=False) as processes,
    ):
        series, enqueued = asyncio.run(_endure(place, processes, wanted))
    wanted.report.write_bytes(msgspec.json.format(msgspec.json.encode(series)))
    words = growing(series)
    for each in series:
        first, last = each.growth() if len(each.values) >= LEAST else (each.values[0], each.values[-1])
        print(f"{each.name:<34} {chart(_drawn(each.values)):<{_WIDTH}} {first:10.1f} → {last:10.1f}")
    print(f"{enqueued} runs enqueued in {wanted.minutes:g} minutes; {len(series[0].values)} samples")
    print("\n".join(words) if words else "nothing grows")
    return 1 if words else 0


def _drawn(values: list[float]) -> list[int]:
    step = max(1, len(values) // _WIDTH)
    return [round(100 * max(values[at : at + step])) for at in range(0, len(values), step)][:_WIDTH]


async def _endure(place: Place, processes: Processes, wanted: argparse.Namespace) -> tuple[list[Series], int]:
    await migrate(place.url)
    environment = {**SETTINGS, "ROTA_DATABASE_URL": place.url}
    started = {
        "server": processes.rota("server", "--port", str(free_port()), APP, environment=environment),
        **{
            f"worker {number}": processes.rota("worker", "--name", f"w{number}", APP, environment=environment)
            for number in range(1, wanted.workers + 1)
        },
    }
    client = Client(await open_store(place.url), app.registry, Config(database_url=place.url))
    until = time.monotonic() + wanted.minutes * 60
    producing = asyncio.create_task(_produce(client, wanted.rate))
    try:
        series = await _sample(place, client, started, until, wanted.minutes * 60 / (LEAST * 5))
    finally:
        producing.cancel()
        await asyncio.gather(producing, return_exceptions=True)
        await client.close()
    return list(series.values()), _enqueued[0]


_enqueued = [0]


async def _produce(client: Client, rate: float) -> None:
    chance = Random(1)
    while True:
        _enqueued[0] += 1
        with contextlib.suppress(Unavailable):
            await client.enqueue(draw(chance, _enqueued[0]))
        await asyncio.sleep(chance.expovariate(rate))


async def _sample(
    place: Place, client: Client, started: Mapping[str, RotaProcess], until: float, rest: float
) -> dict[str, Series]:
    series: dict[str, Series] = {}
    logged = dict.fromkeys(started, 0)
    while time.monotonic() < until:
        await asyncio.sleep(rest)
        for name, process in {**started, "client": None}.items():
            pid = process.pid if process else os.getpid()
            for kind, value in of_process(pid).items():
                record(series, kind, {f"{name}: {kind}": value})
            if process:
                written = len(process.log)
                record(series, "log", {f"{name}: log KB/min": (written - logged[name]) / 1024 * 60 / rest})
                logged[name] = written
        record(series, "size", await place.sizes())
        record(series, "wal", {"WAL": await place.wal()})
        waiting = sum(queued + later for _, _, queued, later in await client.store.queue_counts())
        record(series, "waiting", {"waiting runs": float(waiting)})
    return series


if __name__ == "__main__":
    sys.exit(main())
