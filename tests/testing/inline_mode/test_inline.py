"""Test inline mode: an enqueue calls the handler, and nothing is stored."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import Context, Follows, Invalid, Order, Rota, RunState, SyncContext
from rota.errors import BadPayload, JobDisabled, Unavailable, UnknownJob, UnknownOption, UnknownRun
from rota.testing import InlineRun, adrain, assert_enqueued, inline


@pytest.fixture
def app(tmp_path: Path) -> Rota:
    return Rota(f"sqlite:///{tmp_path / 'never.db'}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "never.db"


def test_a_sync_job_runs_in_its_callers_thread(app: Rota, file: Path) -> None:
    @app.job
    def whereabouts(greeting: str) -> str:
        return f"{greeting} from {threading.current_thread().name}"

    with inline(app) as inlined:
        whereabouts.enqueue(greeting="hello")
    assert [run.result for run in inlined.runs] == [f"hello from {threading.current_thread().name}"]
    assert not file.exists()


def test_sync_code_enqueues_a_coroutine(app: Rota) -> None:
    @app.job
    async def plus(a: int, b: int = 1) -> int:
        return a + b

    with inline(app) as inlined:
        plus.enqueue_many([{"a": 1}, {"a": 2, "b": 3}])
    assert [run.result for run in inlined.runs] == [2, 5]


async def test_async_code_enqueues_both_kinds_both_ways(app: Rota) -> None:
    @app.job
    async def outer(ctx: Context) -> str:
        await inner.aenqueue(by=ctx.run_id)
        inner.enqueue(by="the blocking way")
        return "done"

    @app.job
    def inner(by: str) -> str:
        return by

    with inline(app) as inlined:
        first = await outer.aenqueue()
        outer.enqueue()
        await (await app.connect()).enqueue_many([Order("inner", {"by": "the client"})])
    results = [run.result for run in inlined.runs]
    assert results[:3] == ["done", first.id, "the blocking way"]
    assert len(results) == 7
    assert results[-1] == "the client"


def test_what_a_handler_raises_is_recorded_and_not_raised(app: Rota) -> None:
    @app.job
    def broken() -> None:
        raise LookupError("nowhere")

    with inline(app) as inlined:
        enqueued = broken.enqueue()
    assert inlined.runs[0].id == enqueued.id
    assert isinstance(inlined.runs[0].error, LookupError)


def test_what_a_real_enqueue_would_refuse_is_refused(app: Rota) -> None:
    @app.job
    def typed(n: int) -> None: ...

    @app.job(enabled=False)
    def off() -> None: ...

    with inline(app) as inlined:
        with pytest.raises(BadPayload):
            typed.enqueue(n="many")  # type: ignore[arg-type]
        with pytest.raises(JobDisabled):
            off.enqueue()
        with pytest.raises(UnknownOption):
            typed.options(prio=3).enqueue(n=1)  # type: ignore[call-arg]
        with pytest.raises(UnknownJob):
            app.blocking.enqueue(Order("nobody", {}))
    assert inlined.runs == []


def test_a_result_that_could_not_be_stored_is_an_error(app: Rota) -> None:
    @app.job
    def unstorable() -> object:
        return object()

    with inline(app) as inlined:
        unstorable.enqueue()
    assert isinstance(inlined.runs[0].error, BadPayload)


async def test_there_is_no_database_to_ask(app: Rota) -> None:
    with inline(app):
        with pytest.raises(Unavailable, match="no database"):
            app.blocking.list()
        with pytest.raises(Unavailable, match="no database"):
            await (await app.connect()).get("0123")


def test_assert_enqueued_compares_what_it_is_given(app: Rota) -> None:
    @app.job
    def remind(whom: str, at: datetime, text: str = "") -> None: ...

    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    with inline(app):
        remind.enqueue(whom="Ada", at=noon, text="lunch")
        remind.options(priority=3).enqueue(whom="Bob", at=noon)
        found = assert_enqueued(remind, whom="Ada", at=noon)
        assert isinstance(found, InlineRun)
        assert found.payload["text"] == "lunch"
        assert assert_enqueued(remind).payload["whom"] == "Bob"
        with pytest.raises(AssertionError, match=r"(?s)not enqueued with .*Eve.*'Bob'.*'Ada'"):
            assert_enqueued(remind, whom="Eve")


def test_blocks_may_be_nested(app: Rota) -> None:
    @app.job
    def note(n: int) -> None: ...

    with inline(app) as outer:
        note.enqueue(n=1)
        with inline(app) as inner:
            note.enqueue(n=2)
        note.enqueue(n=3)
        assert_enqueued(note, n=1)
    assert [run.payload["n"] for run in outer.runs] == [1, 3]
    assert [run.payload["n"] for run in inner.runs] == [2]


async def test_outside_of_inline_the_database_is_asked(app: Rota) -> None:
    @app.job
    async def stored(n: int) -> None: ...

    await stored.aenqueue(n=1)
    assert assert_enqueued(stored, n=1).id
    with pytest.raises(AssertionError, match=r"n is 1, not 2"):
        assert_enqueued(stored, n=2)
    assert [run.state for run in await adrain(app)] == [RunState.SUCCEEDED]
    app.close()
    await app.aclose()


def test_runs_that_follow_others_are_called_after_them_or_not_at_all(app: Rota) -> None:
    @app.job
    def number(n: int) -> int:
        if n < 0:
            raise ValueError("no luck")
        return n

    @app.job
    async def total(ctx: Context) -> int:
        return sum(parent.result or 0 for parent in await ctx.parents())

    with inline(app) as inlined:
        good, vain, anyway, *_ = app.enqueue_many(
            [
                total.options(after=["one", "two"]).order(),
                total.options(after=["one", "bad"]).order(),
                total.options(after=["one", Follows("bad", on="end")]).order(),
                number.options(ref="one").order(1),
                number.options(ref="two").order(2),
                number.options(ref="bad").order(-1),
            ]
        )
        found = {run.id: run for run in inlined.runs}
        assert (found[good.id].result, found[anyway.id].result) == (3, 1)
        assert (found[vain.id].result, found[vain.id].state) == (None, RunState.SKIPPED)
        assert "failed" in (found[vain.id].skipped or "")
        total.options(after=[good, good.id]).enqueue()
        assert inlined.runs[-1].result == 3
        total.options(after=[vain]).enqueue()
        assert inlined.runs[-1].skipped == f"run {vain.id} was skipped"
        with pytest.raises(UnknownRun):
            total.options(after=["beef"]).enqueue()
        with pytest.raises(Invalid, match="cycle"):
            app.enqueue_many([number.options(ref=a, after=[b]).order(1) for a, b in ("xy", "yx")])


def test_a_handler_that_hands_over_ends_there(app: Rota) -> None:
    @app.job
    def ask(ctx: SyncContext) -> None:
        ctx.wait_for_external("1h", step="approval")

    with inline(app) as inlined:
        ask.enqueue()
    (run,) = inlined.runs
    assert run.waits is not None
    assert (run.waits.timeout, run.waits.step) == (timedelta(hours=1), "approval")
    assert (run.error, run.result) == (None, None)


def test_what_is_done_outside_is_not_done_inline(app: Rota) -> None:
    label = app.external("label", {"type": "object", "required": ["image"]})
    with inline(app) as inlined:
        label.enqueue(image="a.png")
        with pytest.raises(BadPayload):
            label.enqueue(picture="a.png")
    assert [(run.payload, run.result) for run in inlined.runs] == [({"image": "a.png"}, None)]


def test_jobs_that_are_data_run_inline(app: Rota) -> None:
    tool = app.command_job("tool", ["printf", "%s {run_id}", "{payload.word}"])
    ping = app.http_job("ping", url="http://127.0.0.1:9/")
    with inline(app) as inlined:
        tool.enqueue(word="hello")
        ping.enqueue()
    ran, refused = inlined.runs
    assert ran.result == {"exit_code": 0, "output": f"hello {ran.id}"}
    assert getattr(refused.error, "code", None) == "address_refused"
