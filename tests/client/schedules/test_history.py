"""Verbs of `client.schedules` about past plan times, and what they refuse."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from rota import Context, Fail
from rota.core.calendar.triggers import after, every
from rota.core.ledger.occurrences import OccurrencePage, PlanTimeSummary
from rota.core.runs.run import RunFilter
from rota.core.states import RunState
from rota.errors import Invalid
from rota.testing import Harness
from rota.values.scope import Scope

HOUR = timedelta(hours=1)


async def test_told_verified_explained_and_made_up_for() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"), catch_up="none")
        start = harness.clock.now()
        harness.clock.advance("1h")
        await harness.store.planning.plan(10, {})
        assert [(one.kind, one.count) for one in await schedules.occurrences("s")] == [("missed", 5), ("ran", 1)]
        assert (await schedules.verify("s")).ok
        assert (await schedules.explain("s", start + HOUR / 2)).verdict == "missed"
        done = await schedules.backfill("s", start, start + HOUR / 2, actor="me")
        assert (done.count, done.retried) == (4, 0)  # the rule names the instant it was made at, too
        run = await harness.client.get(done.runs[0])
        assert (run.tags, run.metadata) == (("backfill",), {"backfilled_by": "me"})
        assert (await harness.client.explain(run.id)).verdict == "queued"
        assert (await schedules.verify("s")).ok


@pytest.fixture
async def either(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(url=database_url) as harness:
        yield harness


async def of_many_scopes(harness: Harness) -> tuple[datetime, datetime]:
    """Let two plan times of forty scopes pass: of the first, 37 succeed, two fail and one is cancelled. Return them."""

    @harness.app.job(max_attempts=1)
    async def pay(ctx: Context) -> None:
        if ctx.scope.id in ("03", "33") and ctx.idempotency_key == ctx.run_id:
            raise Fail("no")

    await harness.store.save_jobs([harness.app.registry.newest["pay"].definition])
    scopes: list[Scope | tuple[str, str]] = [("tenant", f"{number:02}") for number in range(40)]
    await harness.client.schedules.create("payroll", "pay", every("10m"), scopes=scopes, overlap="allow")
    harness.clock.advance("10m")
    await harness.store.planning.plan(10, {})
    (cancelled,) = await harness.client.list(RunFilter(scope=Scope("tenant", "17")))
    await harness.client.cancel(cancelled.id)
    await harness.drain()
    first = cancelled.plan_time
    assert first is not None
    harness.clock.advance("10m")
    await harness.store.planning.plan(10, {})
    return first, first + timedelta(minutes=10)


@pytest.mark.parametrize(("limit", "pages"), [(1, [40, 40]), (40, [40, 40]), (79, [40, 40]), (80, [80]), (100, [80])])
async def test_no_page_cuts_a_plan_time_of_many_scopes(either: Harness, limit: int, pages: list[int]) -> None:
    first, second = await of_many_scopes(either)
    schedules = either.client.schedules
    found: list[OccurrencePage] = []
    while not found or found[-1].next is not None:
        after_place = found[-1].next if found else None
        found.append(await schedules.occurrence_page("payroll", first, second, limit=limit, after=after_place))
    assert [len(page.occurrences) for page in found] == pages
    lines = [line for page in found for line in page.occurrences]
    assert len({(line.plan_time, line.scope) for line in lines}) == 80
    told = {line.plan_time: line.summary.words for line in lines if line.summary is not None}
    assert told == {first: "37 succeeded, 2 failed, 1 cancelled", second: "40 queued"}
    assert (lines[0].summary is not None, lines[40].summary is not None) == (True, True)


async def test_a_retry_counts_in_place_of_the_run_that_failed(either: Harness) -> None:
    first, _ = await of_many_scopes(either)
    failed, _ = await either.client.list(RunFilter(states=(RunState.FAILED,)))
    await either.client.retry(failed.id)
    await either.drain()
    line, *_ = await either.client.schedules.occurrences("payroll", first, first)
    assert line.summary == PlanTimeSummary(
        40, {"succeeded": 38, "failed": 1, "cancelled": 1}, "38 succeeded, 1 failed, 1 cancelled"
    )
    explained = await either.client.schedules.explain("payroll", first)
    assert explained.words[0] == "38 succeeded, 1 failed, 1 cancelled."


async def test_more_scopes_than_a_page_may_have_are_cut_and_not_summed(
    either: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.client.schedules.history.MOST_OCCURRENCES", 30)
    first, second = await of_many_scopes(either)
    schedules = either.client.schedules
    page = await schedules.occurrence_page("payroll", first, second, limit=10)
    rest = await schedules.occurrence_page("payroll", first, second, limit=10, after=page.next)
    assert (len(page.occurrences), len(rest.occurrences)) == (30, 10)
    assert {line.summary for line in (*page.occurrences, *rest.occurrences)} == {None}
    assert len({line.scope for line in (*page.occurrences, *rest.occurrences)}) == 40


async def test_what_follows_its_last_run_is_simulated_from_the_plan_time_that_is_known() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", after("1h"))
        await harness.pass_time("30m")
        known = (await schedules.get("s")).next_plan
        assert known is not None
        assert known > harness.clock.now()
        assert (await schedules.simulate("s", "3h")).events[0].plan_time == known
        assert (await schedules.simulate("s", "3h", changes={"trigger": after("2h")})).events[0].plan_time < known


async def test_outages_are_written_as_on_the_command_line() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        schedules = harness.client.schedules
        await schedules.create("s", "work", every("10m"))
        now = harness.clock.now()
        found = await schedules.simulate("s", "3h", outages=[("+1h", "+2h")])
        assert found.counts["covered"] > 0
        assert found == await schedules.simulate("s", "3h", outages=[(now + HOUR, now + 2 * HOUR)])
        unlike: Any = [5, ("+1h",), ("+1h", 7), ("soon", "+1h"), ("+2h", "+1h"), (datetime(2030, 1, 1), "+1h")]  # noqa: DTZ001
        for wrong in unlike:
            with pytest.raises(Invalid):
                await schedules.simulate("s", "3h", outages=[wrong])
        with pytest.raises(Invalid, match="is negative"):
            await schedules.simulate("s", timedelta(seconds=-1))


async def test_how_long_a_planner_may_be_silent_is_configured() -> None:
    async with Harness(lease=timedelta(hours=2)) as harness:
        await harness.declare("work")
        await harness.client.schedules.create("s", "work", every("10m"))
        await harness.worker().heartbeat()
        harness.clock.advance("1h")
        told = await harness.client.schedules.explain("s", harness.clock.now())
        assert "1 worker is alive, and plans other schedules" in str(told)
        assert "No worker is alive" not in str(told)
