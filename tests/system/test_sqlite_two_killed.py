"""Test two processes on one SQLite file, one of them killed repeatedly: no run is lost or succeeds twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import apsw

from rota import Outcome
from tests.support.processes.rota_process import RotaProcess
from tests.support.wait import PATIENCE
from tests.system.site import APP, Producer, Site

KILLS = 10
SEED = 20


def start(site: Site, name: str) -> RotaProcess:
    """Not waited for: it may be killed while it opens the file."""
    flags = ["--name", name, "--concurrency", "10"]
    return site.processes.rota("worker", *flags, APP, environment=site.environment())


async def killed_again_and_again(site: Site) -> tuple[list[str], int]:
    """The runs that it was given to hold, and how often it held some when it was killed."""
    chance = random.Random(SEED)
    runs: list[str] = []
    held = 0
    for turn in range(KILLS):
        doomed = start(site, "doomed")
        if turn % 2:
            await asyncio.to_thread(doomed.until_said, f" runs {APP}")
            runs += await napping(site, doomed.pid)
            held += 1
        await asyncio.sleep(chance.uniform(0.0, 0.3))
        doomed.kill()
    return runs, held


async def napping(site: Site, pid: int) -> list[str]:
    """Runs that take longer than it has to live: as many as it takes until it holds one of them."""
    naps: list[str] = []
    async with asyncio.timeout(PATIENCE):
        while not any(entry.pid == pid and entry.run_id in naps for entry in site.ledger.entries("begin")):
            naps += await site.enqueue_many(4, "nap", seconds=[0.6, 0.0])
            await asyncio.sleep(0.03)
    return naps


def integrity(url: str) -> object:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    try:
        return connection.execute("pragma integrity_check").get
    finally:
        connection.close()


async def test_two_processes_of_which_one_is_killed_again_and_again(sqlite_site: Site) -> None:
    site = sqlite_site
    steady = site.worker("steady")
    async with Producer(site.client).producing() as producer:
        naps, held = await killed_again_and_again(site)
    runs = [*producer.acknowledged, *naps]
    await site.all_succeed(runs)
    await site.agree(runs)
    assert steady.exit_code is None
    assert integrity(site.url) == "ok"
    assert producer.refused == 0
    attempts = {run: await site.client.attempts(run) for run in runs}
    outcomes = Counter(attempt.outcome for each in attempts.values() for attempt in each)
    print(f"{len(runs)} runs: {outcomes}")
    assert outcomes[Outcome.SUCCEEDED] == len(runs), "each once"
    assert outcomes[Outcome.LOST] >= held >= KILLS // 2, "those that were killed held runs"
    for run, each in attempts.items():
        assert (await site.run(run)).fence == each[-1].fence, "no success under an old fence"
