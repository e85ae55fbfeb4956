"""Test a run that kills its worker each time: it spends its own attempts and no others."""

from __future__ import annotations

from rota import Outcome, RunState
from tests.support.wait import until
from tests.system.site import APP, Site


async def test_a_poison_run_expires_and_takes_nobody_with_it(site: Site) -> None:
    supervisor = site.supervised(2, concurrency=4)
    runs = await site.enqueue_many(20, "nap_in_thread", seconds=[0.3])
    poison = await site.enqueue("poison", {"priority": 5})
    done = await site.final(poison)
    assert (done.state, done.attempt) == (RunState.EXPIRED, 3)
    assert done.error is not None
    assert done.error.code == "stale_timeout"
    assert await site.outcomes(poison) == [Outcome.LOST] * 3
    assert len({entry.pid for entry in site.ledger.entries("begin", poison)}) == 3, "each cost a process its life"
    await site.all_succeed(runs)
    await site.agree(runs)
    for run in runs:
        assert (await site.outcomes(run)).count(Outcome.LOST) <= 2, await site.outcomes(run)
    await until(lambda: len(supervisor.descendants) == 2)
    assert supervisor.log.count("a worker process ended with 137; another starts in ") == 3
    await until(lambda: supervisor.log.count(f" runs {APP}") == 5)
    assert supervisor.exit_code is None
    await site.all_succeed(await site.enqueue_many(10, "quick"))


async def test_the_victims_of_one_worker_are_done_side_by_side(site: Site) -> None:
    """Of one that was killed from outside: innocent, all of them, and nobody says otherwise."""
    doomed = site.worker("doomed", concurrency=10)
    runs = await site.enqueue_many(10, "nap_in_thread", seconds=[60.0, 1.0])
    await until(lambda: len(site.ledger.entries("begin")) == 10)
    doomed.kill()
    heir = site.worker("heir", concurrency=10)
    await site.all_succeed(runs)
    await site.agree(runs)
    times = sorted((entry.at, entry.what) for entry in site.ledger.entries() if entry.pid == heir.pid)
    assert [what for _, what in times] == ["begin"] * 10 + ["end"] * 10
