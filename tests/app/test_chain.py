"""Test chains and groups: what runs in which order, with which results, and what happens when a stage fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rota import Conflict, Follows, Invalid, Order, Rota, RunFailed, RunFilter, RunState, Snooze, chain, group
from rota.api import asgi
from rota.errors import BadPayload, KeyReused
from rota.remote import RemoteClient
from rota.testing import drain, inline
from tests.support.servers.http_server import serving

FAILING = {"on": False}


def declare(app: Rota) -> SimpleNamespace:
    @app.job(max_attempts=2, backoff="0s")
    def fetch(url: str) -> list[str]:
        if FAILING["on"]:
            raise ValueError("out of order")
        return [url, url]

    @app.job
    def count(pages: list[str], times: int = 1) -> int:
        return len(pages) * times

    @app.job
    def total(counts: list[int]) -> int:
        return sum(counts)

    @app.job
    def nested(counts: list[list[int]]) -> str:
        return str(counts)

    @app.job
    def clean() -> str:
        return "clean"

    return SimpleNamespace(fetch=fetch, count=count, total=total, nested=nested, clean=clean)


@pytest.fixture
def app(database_url: str) -> Iterator[Rota]:
    app = Rota(database_url)
    FAILING["on"] = False
    yield app
    app.close()


@pytest.fixture
def jobs(app: Rota) -> SimpleNamespace:
    return declare(app)


def test_results_go_from_stage_to_stage(app: Rota, jobs: SimpleNamespace) -> None:
    flow = chain(
        group(chain(jobs.fetch.s("a"), jobs.count.s()), chain(jobs.fetch.s("b"), jobs.count.s(times=3))),
        jobs.total.s(),
    )
    handle = flow.enqueue()
    waiting = handle.run()
    assert (waiting.state, waiting.payload) == (RunState.SCHEDULED, {})
    words = " ".join(app.blocking.explain(handle.id).words)
    assert "It takes results as arguments: counts[0] from run" in words
    drain(app)
    assert handle.result() == 2 + 6
    assert handle.run().payload == {"counts": [2, 6]}
    assert [parent.inputs for parent in app.blocking.parents(handle.id)] == [("counts[0]",), ("counts[1]",)]


def test_inline_passes_results_too(app: Rota, jobs: SimpleNamespace) -> None:
    with inline(app) as inlined:
        handle = chain(group(jobs.fetch.s("a"), jobs.fetch.s("b")), group(jobs.clean.s(), jobs.clean.s()))
        handle.enqueue_all()
        result = chain(jobs.fetch.s("a"), jobs.count.s(), jobs.clean.s()).enqueue().result()
    assert result == "clean"
    assert [run.payload for run in inlined.runs[-3:]] == [{"url": "a"}, {"pages": ["a", "a"]}, {}]


def test_lists_of_lists_and_a_group_after_a_stage(app: Rota, jobs: SimpleNamespace) -> None:
    split = group(jobs.count.s(), jobs.count.s(times=2))
    handle = chain(jobs.fetch.s("a"), group(split, split), jobs.nested.s()).enqueue()
    ends = group(jobs.clean.s(), chain(jobs.fetch.s("a"), jobs.count.s())).enqueue()
    drain(app)
    assert handle.result() == "[[2, 4], [2, 4]]"
    assert [end.result() for end in ends] == ["clean", 2]


def test_a_stage_that_fails_ends_what_follows_and_retries_take_its_result(app: Rota, jobs: SimpleNamespace) -> None:
    FAILING["on"] = True
    handles = chain(jobs.fetch.s("a"), jobs.count.s(), jobs.clean.s()).enqueue_all()
    drain(app)
    assert [handle.status() for handle in handles] == [RunState.FAILED, RunState.SKIPPED, RunState.SKIPPED]
    with pytest.raises(RunFailed, match="skipped"):
        handles[1].result()
    client = app.blocking
    with pytest.raises(Conflict, match=rf"result of run {handles[0].id}, which has not succeeded"):
        client.retry(handles[1].id)
    refused = client.retry_many(RunFilter(states=(RunState.SKIPPED,), job="count"))
    assert (refused.done, len(refused.refused)) == (0, 1)
    FAILING["on"] = False
    client.retry(handles[0].id)
    drain(app)
    again = client.retry(handles[1].id)
    assert again.payload == {"pages": ["a", "a"]}
    drain(app)
    assert app.handle(again.id).result() == 2
    assert client.retry(again.id).payload == again.payload  # of one that has run: as it ran
    drain(app)


def test_automatic_retries_keep_the_argument(app: Rota, jobs: SimpleNamespace) -> None:
    seen: list[Any] = []

    @app.job(max_attempts=3, backoff="0s")
    def picky(pages: list[str]) -> int:
        seen.append(pages)
        if len(seen) == 1:
            raise ValueError("once")
        if len(seen) == 2:
            raise Snooze("0s")
        return len(pages)

    handle = chain(jobs.fetch.s("a"), picky.s()).enqueue()
    drain(app)
    assert handle.result() == 2
    assert seen == [["a", "a"]] * 3


def test_a_cancelled_stage(app: Rota, jobs: SimpleNamespace) -> None:
    first, last = chain(jobs.fetch.s("a"), jobs.count.s()).enqueue_all()
    first.cancel()
    assert last.status() is RunState.SKIPPED
    assert last.run().reason == f"run {first.id} was cancelled"


def test_inputs_of_a_run_that_has_ended_are_filled_at_once(app: Rota, jobs: SimpleNamespace) -> None:
    fetched = jobs.fetch.enqueue("a")
    drain(app)
    handle = jobs.count.options(inputs={"pages": fetched}).enqueue(times=2)
    assert handle.run().payload == {"pages": ["a", "a"], "times": 2}
    drain(app)
    assert handle.result() == 4


def test_the_plain_predecessor_may_end_last(app: Rota, jobs: SimpleNamespace) -> None:
    fetched, cleaned = jobs.fetch.enqueue("a"), jobs.clean.options(delay="1h").enqueue()
    handle = jobs.count.options(inputs={"pages": fetched}, after=[cleaned]).enqueue()
    drain(app)
    assert handle.run().payload == {}
    app.blocking.cancel(cleaned.id)
    assert handle.status() is RunState.SKIPPED
    cleaned = jobs.clean.options(after=[fetched], priority=-5).enqueue()
    handle = jobs.count.options(inputs={"pages": fetched}, after=[cleaned]).enqueue()
    drain(app)
    assert handle.result() == 2


def test_a_result_that_does_not_fit_is_refused_by_the_handler(app: Rota, jobs: SimpleNamespace) -> None:
    handle = chain(jobs.clean.s(), jobs.count.s()).enqueue()
    drain(app)
    with pytest.raises(RunFailed, match=r"pages"):
        handle.result()
    assert handle.run().attempt == 1


def test_a_flow_with_a_key_is_enqueued_once(app: Rota, jobs: SimpleNamespace) -> None:
    flow = chain(jobs.fetch.s("a"), jobs.count.s()).options(idempotency_key="order-7", tags=["shop"])
    first, again = flow.enqueue_all(), flow.enqueue_all()
    assert [handle.id for handle in again] == [handle.id for handle in first]
    assert ([handle.created for handle in first], [handle.created for handle in again]) == ([True] * 2, [False] * 2)
    assert first[1].run().tags == ("shop",)
    with pytest.raises(KeyReused):
        chain(jobs.fetch.s("b"), jobs.count.s()).options(idempotency_key="order-7").enqueue()
    drain(app)
    assert first[1].result() == 2
    assert flow.enqueue().result() == 2
    assert len(app.blocking.list()) == 2


def test_options_of_a_flow(app: Rota, jobs: SimpleNamespace) -> None:
    flow = chain(jobs.fetch.options(priority=7, ref="stage-1").s("a"), jobs.clean.s()).options(delay="1h", priority=3)
    first, last = flow.enqueue_all()
    assert (first.run().priority, last.run().priority) == (7, 3)
    assert first.run().run_at > last.run().run_at
    with pytest.raises(Invalid, match="key cannot be the same for all runs of a chain"):
        flow.options(key="a")
    with pytest.raises(Invalid, match="inside another"):
        chain(jobs.clean.s(), flow).enqueue()


def test_what_a_flow_refuses(app: Rota, jobs: SimpleNamespace) -> None:
    with pytest.raises(Invalid, match="takes 'pages' from what comes before it"):
        chain(jobs.count.s(), jobs.clean.s()).enqueue()
    with pytest.raises(Invalid, match="ends with a group"):
        chain(jobs.clean.s(), group(jobs.clean.s(), jobs.clean.s())).enqueue()
    with pytest.raises(Invalid, match=r"job\.s\("):
        chain(jobs.clean, jobs.clean)
    with pytest.raises(Invalid, match="empty group"):
        group()
    with pytest.raises(BadPayload, match="deepth"):
        jobs.count.s(deepth=1)
    other = declare(Rota(app.config.database_url))
    with pytest.raises(Invalid, match="several apps"):
        chain(jobs.fetch.s("a"), other.count.s()).enqueue()
    assert app.blocking.list() == []


def test_what_inputs_refuse(app: Rota, jobs: SimpleNamespace) -> None:
    run = jobs.fetch.enqueue("a")

    @app.job(limit={"max": 1, "by": "pages"}, name="limited")
    def limited(pages: list[str]) -> None: ...

    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (jobs.count, {"pags": run}, {}, "takes no argument 'pags'|pages is missing|is missing"),
        (jobs.count, {"pages": 7}, {}, "cannot be the result of 7"),
        (jobs.count, {"pages": []}, {}, "a run or a list of runs"),
        (jobs.count, [run], {}, "inputs must map arguments to runs"),
        (jobs.count, {"pages": [run] * 1_001}, {}, "fill at most 1000 places, not 1001"),
        (jobs.count, {"pages": run}, {"unique": True}, "unique key of 'count' is by 'pages'"),
        (jobs.count, {"pages": run}, {"unique": ["pages"]}, "unique key of 'count' is by 'pages'"),
        (jobs.count, {"pages": run}, {"after": [Follows(run, on="end")]}, "inputs need the success"),
        (limited, {"pages": run}, {}, "a limit of 'limited' is by 'pages'"),
    ]
    for job, inputs, options, words in cases:
        with pytest.raises(Invalid, match=words):
            job.options(inputs=inputs, **options).enqueue()
    with pytest.raises(BadPayload, match="is given twice"):
        jobs.count.options(inputs={"pages": run}).enqueue(pages=["a"])
    assert len(app.blocking.list()) == 1


def test_results_that_are_too_large_begin_nothing(app: Rota, jobs: SimpleNamespace) -> None:
    """Their runs have ended well, whoever takes the results; so has who takes less of the same."""

    @app.job
    def large() -> str:
        return "x" * 100_000

    @app.job
    def take(pages: list[str]) -> int:
        return len(pages)

    taking: Any = take  # what results fill is not given
    first, second = large.enqueue(), large.enqueue()
    over, fits, beside = (
        taking.options(inputs={"pages": [first] * count + [second] * 100}).enqueue() for count in (100, 1, 20)
    )
    after = jobs.count.options(inputs={"times": over}).enqueue(["a"])
    drain(app)
    states = [handle.run().state for handle in (first, second, over, fits, beside, after)]
    assert states == ["succeeded", "succeeded", "skipped", "succeeded", "succeeded", "skipped"]
    assert "returned more than fits into its arguments" in str(over.run().reason)
    with pytest.raises(Conflict, match="larger than 16777216"):
        app.blocking.retry(over.id)
    with pytest.raises(Invalid, match="larger than 16777216"):
        taking.options(inputs={"pages": [first] * 200}).enqueue()


def test_in_async_code(app: Rota, jobs: SimpleNamespace) -> None:
    async def enqueue() -> list[str]:
        handle = await chain(jobs.fetch.s("a"), jobs.count.s()).aenqueue()
        ends = await group(jobs.clean.s()).aenqueue()
        more = await chain(jobs.clean.s(), jobs.clean.s()).aenqueue_all()
        await app.aclose()
        return [handle.id, *(end.id for end in (*ends, *more))]

    ids = asyncio.run(enqueue())
    drain(app)
    assert [app.handle(id).result() for id in ids] == [2, "clean", "clean", "clean"]


async def test_a_remote_client_enqueues_what_a_chain_plans(database_url: str) -> None:
    served, here = Rota(database_url), Rota("sqlite:///never-opened.db")
    declare(served)
    jobs = declare(here)
    orders = chain(group(jobs.fetch.s("a"), jobs.fetch.s("b")), jobs.nested.s()).orders()
    with serving(asgi(served), served) as site:
        await save_jobs(served)
        async with RemoteClient(site.url) as client:
            *_, last = await client.enqueue_many([*orders])
            single = await client.enqueue(Order("count", {}, {"inputs": {"pages": last}}))
            assert [parent.id for parent in await client.parents(single.id)] == [last.id]
            parents = await client.parents(last.id)
            assert [parent.inputs for parent in parents] == [("counts[0]",), ("counts[1]",)]
    await served.aclose()


async def save_jobs(app: Rota) -> None:
    await (await app.connect()).store.save_jobs(app.registry.definitions())
