"""Test the context of a handler in a child process: it learns of shutdown and renews its lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from rota import RunState
from rota.store.databases.database import Tx
from rota.testing import Harness
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import Working
from tests.support.wait import PATIENCE, until

Start = Callable[..., Awaitable[Working]]


async def test_it_hears_that_its_worker_is_stopping(harness: Harness, working: Start, tmp_path: Path) -> None:
    harness.app.job(isolation="process")(isolated_jobs.until_shutting_down)
    run = await harness.enqueue("until_shutting_down", place=str(tmp_path / "pid"))
    worker = await working(harness)
    await until((tmp_path / "pid").exists)
    await worker.stop(timedelta(seconds=PATIENCE))
    ended = await harness.run(run)
    assert (ended.state, ended.result) == (RunState.SUCCEEDED, "told")


async def test_its_heartbeat_renews_the_lease(either: Harness, working: Start, tmp_path: Path) -> None:
    async def expiry(tx: Tx) -> int:
        return int((await tx.fetch_sql("select expires_at from rota_lease"))[0][0])

    either.app.job(isolation="process")(isolated_jobs.renew_when_told)
    run = await either.enqueue("renew_when_told", place=str(tmp_path / "pid"))
    hour = timedelta(hours=1)
    worker = await working(either, heartbeat=hour, lease=3 * hour)  # its own rhythm would be too slow
    await until((tmp_path / "pid").exists)
    before = await either.store.database.read(expiry)
    either.clock.advance("5s")
    (tmp_path / "go").touch()

    async def is_renewed() -> bool:
        return await either.store.database.read(expiry) == before + 5_000_000

    await until(is_renewed)
    (tmp_path / "end").touch()
    await worker.has_state(run, RunState.SUCCEEDED)
