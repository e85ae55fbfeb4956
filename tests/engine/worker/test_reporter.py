"""Test a worker whose database fails: nothing is lost, done twice, or left claimed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import pytest

from rota import Outcome, RunState
from rota.core.runs.outcome import Report
from rota.engine.worker.reporter import Reporter
from rota.errors import DeadlineExceeded, Invalid
from rota.store import Store
from rota.store.runs.report import Reported
from rota.testing import Harness
from tests.support.databases.unreliable_store import Fault, ShakyStore
from tests.support.runs.real_worker import Working

Start = Callable[..., Awaitable[Working]]

every_fault = pytest.mark.parametrize("fault", ["refused", "unanswered", "broken"])


@pytest.fixture(autouse=True)
def _soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.worker.reporter._REST_AFTER_TROUBLE", 0.01)
    monkeypatch.setattr("rota.engine.worker.worker._TROUBLE", 0.01)


@every_fault
@pytest.mark.parametrize("fails", [False, True])
async def test_a_report_that_fails_is_repeated_until_it_is_settled(
    either: Harness, working: Start, fault: Fault, fails: bool
) -> None:
    calls: list[bool] = []

    @either.app.job(max_attempts=1)
    async def work(fails: bool) -> str:
        calls.append(fails)
        if fails:
            raise LookupError
        return "done"

    run = await either.enqueue(work, fails=fails)
    store = ShakyStore(either.store)
    store.report_faults.extend([fault, fault])
    real = await working(either, store=store)
    await real.has_state(run, RunState.FAILED if fails else RunState.SUCCEEDED)
    await real.idle()
    assert len(store.reports) == 3
    assert calls == [fails]
    assert len(await either.attempts(run)) == 1


@every_fault
async def test_leases_of_a_claim_without_an_answer_are_handed_back(
    either: Harness, working: Start, fault: Fault
) -> None:
    begun: list[int] = []

    @either.app.job(max_attempts=1)
    async def work(n: int) -> None:
        begun.append(n)

    runs = [await either.enqueue(work, n=n) for n in range(3)]
    store = ShakyStore(either.store)
    store.claim_faults.append(fault)
    real = await working(either, store=store)
    handed_back = 0
    for run in runs:
        done = await real.has_state(run, RunState.SUCCEEDED)
        assert done.attempt == 1
        *before, last = [attempt.outcome for attempt in await either.attempts(run)]
        assert set(before) <= {Outcome.HANDED_BACK}
        assert last is Outcome.SUCCEEDED
        handed_back += len(before)
    assert (handed_back > 0) == (fault == "unanswered")
    assert sorted(begun) == [0, 1, 2]


async def test_a_stale_report_is_counted_and_does_not_hold_up_the_others(harness: Harness, working: Start) -> None:
    release = asyncio.Event()

    @harness.app.job(max_attempts=1)
    async def work() -> None:
        await release.wait()

    stale, fresh = await harness.enqueue(work), await harness.enqueue(work)
    real = await working(harness, heartbeat=harness.lease / 3)
    await real.has_state(fresh, RunState.RUNNING)
    await harness.store.report(
        [_lost(run, fence) for run, fence in await harness.store.leases_of(real.worker.info.id) if run == stale.id]
    )
    release.set()
    await real.has_state(fresh, RunState.SUCCEEDED)
    await real.idle()
    assert await harness.state(stale) is RunState.EXPIRED
    assert real.worker._reporter.refused == 1


def _lost(run_id: str, fence: int) -> Report:
    return Report(run_id, fence, Outcome.LOST)


async def test_a_report_that_cannot_be_stored_does_not_hold_up_the_others(harness: Harness) -> None:
    class Latin(Store):
        """A database that cannot hold an arrow."""

        async def report(self, reports: Sequence[Report]) -> Reported:
            if any("→" in (report.result or "") for report in reports):
                raise Invalid("character '→' has no equivalent")
            return await super().report(reports)

    runs = [await harness.enqueue("work") for _ in range(3)]
    worker = await harness.worker("a").claim(3)
    reporter = Reporter(Latin(harness.store.database), settled=lambda report: None)
    for place, run in enumerate(runs):
        result = '"→"' if place == 1 else '"fine"'
        reporter.add(Report(run.id, worker.fence(run), Outcome.SUCCEEDED, result=result))
    for _ in range(10):
        with contextlib.suppress(Invalid):
            await reporter.step()
    assert reporter.pending == []
    assert [await harness.state(run) for run in runs] == [RunState.SUCCEEDED, RunState.FAILED, RunState.SUCCEEDED]
    error = (await harness.run(runs[1])).error
    assert error is not None
    assert error.code == "bad_result"


async def test_a_batch_that_takes_too_long_is_halved(harness: Harness) -> None:
    sizes: list[int] = []

    class Slow(Store):
        async def report(self, reports: Sequence[Report]) -> Reported:
            sizes.append(len(reports))
            if len(reports) > 2:
                raise DeadlineExceeded("report", 15)
            return await super().report(reports)

    runs = [await harness.enqueue("work") for _ in range(8)]
    worker = await harness.worker("a").claim(8)
    reporter = Reporter(Slow(harness.store.database), settled=lambda report: None)
    for run in runs:
        reporter.add(Report(run.id, worker.fence(run), Outcome.SUCCEEDED))
    for _ in range(12):
        with contextlib.suppress(DeadlineExceeded):
            await reporter.step()
    assert reporter.pending == []
    assert sizes[:3] == [8, 4, 2]


async def test_what_is_to_be_said_before_a_report_and_takes_too_long_is_an_expected_trouble(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told in words, without a traceback; and the third time the report goes without it."""
    monkeypatch.setattr("rota.engine.worker.reporter._PATIENCE", 0.01)
    run = await harness.enqueue("work")
    worker = await harness.worker("a").claim(1)
    reporter = Reporter(harness.store, settled=lambda report: None, before=asyncio.Event().wait)
    reporter.add(Report(run.id, worker.fence(run), Outcome.SUCCEEDED))
    for _ in range(2):
        with pytest.raises(DeadlineExceeded, match="did not finish within"):
            await reporter.step()
    await reporter.step()
    assert reporter.pending == []
