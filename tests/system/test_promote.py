"""Test a promotion whose process is killed repeatedly, with workers before and after it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rota.store import open_database
from rota.testing import Harness, ManualClock
from tests.support.databases.sample_data import live, make_app
from tests.support.databases.tables import content_of
from tests.system.site import opened

# Dies for real, after so many bites: nothing is closed, nothing is rolled back by anybody but the databases.
PROGRAM = """
import asyncio, os, signal, sys
from rota.client.promotion import Moved, Promotion, place_of
from rota.store import open_database

source, target, bites = sys.argv[1], sys.argv[2], int(sys.argv[3])
told = []

def tell(moved: Moved) -> None:
    told.append(moved)
    if len(told) == bites:
        os.kill(os.getpid(), signal.SIGKILL)

async def promote() -> None:
    await Promotion(open_database(source), open_database(target), place_of(target), tell, rows=10).promote()

asyncio.run(promote())
os._exit(0)
"""


def promote(source: str, target: str, bites: int) -> int:
    arguments = [sys.executable, "-c", PROGRAM, source, target, str(bites)]
    return subprocess.run(arguments, timeout=60, check=False).returncode


async def test_killed_again_and_again_nothing_is_lost_or_doubled(new_sqlite_url: str, new_postgres_url: str) -> None:
    yesterday = ManualClock(datetime.now(UTC) - timedelta(days=1))
    async with Harness(make_app([]), new_sqlite_url, yesterday) as harness:
        await live(harness)
    source, target = open_database(new_sqlite_url), open_database(new_postgres_url)
    before = await content_of(source)
    codes = [await asyncio.to_thread(promote, new_sqlite_url, new_postgres_url, bites) for bites in (1, 20, 40, 10_000)]
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, -signal.SIGKILL, 0]
    after = await content_of(target)
    after.pop("rota_fault")
    after["rota_setting"] = [row for row in after["rota_setting"] if "promoted_from" not in row]
    after["rota_event"] = [row for row in after["rota_event"] if "promoted" not in row]
    assert after == before
    await source.close()
    await target.close()


async def test_workers_go_on_where_they_were(sqlite_url: str, new_postgres_url: str, tmp_path: Path) -> None:
    """What was queued runs once, on whichever database; a worker on the old file is told where to go."""
    async with opened(sqlite_url, tmp_path) as site:
        worker = site.worker()
        done = await site.enqueue_many(5, "quick")
        await site.all_succeed(done)
        refused = await asyncio.to_thread(rota, "promote", "--database", sqlite_url, "--to", new_postgres_url)
        assert (refused.returncode, "workers are running" in refused.stderr) == (6, True)
        worker.terminate()
        worker.wait()
        waiting = await site.enqueue_many(5, "quick")
        moved = await asyncio.to_thread(
            rota, "promote", "--database", sqlite_url, "--to", new_postgres_url, "--wait", "30s"
        )
        assert moved.returncode == 0, moved.stderr
        late = site.processes.rota("worker", "tests.support.jobs.system_jobs:app", environment=site.environment())
        assert late.wait() == 78
        assert "was promoted to" in late.log
    async with opened(new_postgres_url, tmp_path) as site:
        site.worker()
        await site.all_succeed(waiting)
        assert site.begins_once([*done, *waiting])


def rota(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rota", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
