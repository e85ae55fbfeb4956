"""Test hooks of workers that are killed: each event makes one run of the hook, which is done at least once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from rota import Run, RunFilter, RunState
from tests.support.processes.rota_process import RotaProcess
from tests.support.wait import until
from tests.system.site import Site

APP = "tests.support.jobs.hooked_jobs:app"
HOOK = "on.noted"


def worker(site: Site, name: str) -> RotaProcess:
    flags = ["--name", name, "--concurrency", "4"]
    return site.processes.rota("worker", *flags, APP, environment=site.environment()).until_said(f" runs {APP}")


async def noted(site: Site) -> Sequence[Run]:
    return await site.client.list(RunFilter(job=HOOK), limit=500)


async def test_kills_between_event_and_hook_lose_no_event_and_tell_none_twice(site: Site) -> None:
    workers = [worker(site, "one"), worker(site, "two")]
    await until(lambda: stored(site))
    runs: list[str] = []
    for turn in range(4):
        ended = len(site.ledger.entries("end"))
        runs += await site.enqueue_many(20, "nap", seconds=[0.1])
        await until(partial(has_more, site, ended))  # an event is being written, or was a moment ago
        workers[turn % 2].kill()
        workers[turn % 2] = worker(site, ("one", "two")[turn % 2])
    await site.all_succeed(runs)

    async def all_told() -> bool:
        return sum(run.state is RunState.SUCCEEDED for run in await noted(site)) >= len(runs)

    await until(all_told)
    hooks = await noted(site)
    assert Counter(str(run.result) for run in hooks) == Counter(dict.fromkeys(runs, 1))
    assert all(site.ledger.entries("end", run.id) for run in hooks)


async def stored(site: Site) -> bool:
    """Return whether the hook is known: events before that are told to nobody."""
    return HOOK in [one.name for one in await site.client.notifications.list()]


def has_more(site: Site, ended: int) -> bool:
    return len(site.ledger.entries("end")) > ended
