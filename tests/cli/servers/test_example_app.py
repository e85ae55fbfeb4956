"""The example that `rota dev` runs: its long job shows steps, progress and a log."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from rota import Order, RunState
from rota.cli.servers import example_app
from rota.config import Config
from rota.testing import adrain


async def test_the_long_job_shows_all_that_a_long_job_can(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_app, "asyncio", SimpleNamespace(sleep=lambda _: asyncio.sleep(0)))
    app = example_app.make(Config(database_url=sqlite_url))
    client = await app.connect()
    await client.store.save_jobs(app.registry.definitions())
    run = await client.enqueue(Order("import_catalog", {"pages": 10}))
    await adrain(app)
    done = await client.get(run.id)
    assert (done.state, done.result) == (RunState.SUCCEEDED, {"products": 250, "shops": 3})
    assert [step.id for step in await client.steps(run.id)] == ["read", "convert", "publish"]
    assert {line.level for line in await client.logs(run.id)} == {"info", "warning"}
    await app.aclose()
