"""Test JSON log lines and the fields of the run they concern."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota import RunState
from rota.engine.handlers.current_run import RunFields, current_run, run_fields, worker_context
from rota.engine.observability.logs import JsonLines, text_lines
from rota.testing import Harness
from tests.support.runs.real_worker import Working

Start = Callable[..., Awaitable[Working]]
log = logging.getLogger("rota.test")


def line_of(message: str, *arguments: object, error: BaseException | None = None, **extra: object) -> dict[str, Any]:
    info = (type(error), error, error.__traceback__) if error else None
    record = log.makeRecord("shop", logging.WARNING, "shop.py", 1, message, arguments, info, extra=extra)
    record.created = 1_767_225_600.5
    text = JsonLines().format(record)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_line_has_its_time_level_logger_and_message() -> None:
    assert line_of("%d items\nof %s", 3, "é") == {
        "time": "2026-01-01T00:00:00.500Z",
        "level": "warning",
        "logger": "shop",
        "message": "3 items\nof é",
    }


def test_extra_fields_are_kept_but_do_not_replace_ours() -> None:
    line = line_of("x", order=7, level="loud", time=3)
    assert (line["order"], line["level"], line["time"]) == (7, "warning", "2026-01-01T00:00:00.500Z")


def test_an_exception_is_text() -> None:
    try:
        raise ValueError("no\nluck")
    except ValueError as error:
        line = line_of("x", error=error)
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("ValueError: no\nluck")


@pytest.mark.parametrize("value", [object(), {1: {2: 3}}, float("nan"), 2**70, {"a": {1, 2}}, "\ud800", [b"\xff"]])
def test_whatever_is_logged_is_one_line_of_json(value: object) -> None:
    assert line_of("x", value=value)["message"].strip("'") == "x"


async def test_lines_inside_a_handler_name_its_run(harness: Harness) -> None:
    run = await harness.enqueue("work")
    claim = (await harness.worker().claim()).claims[run.id]
    fields = {"run_id": run.id, "job": "work", "attempt": 1, "fence": 1}
    assert RunFields(claim) == fields
    token = current_run.set(claim)
    try:
        assert line_of("x").items() >= fields.items()
        assert line_of("x", fence=9)["fence"] == 9
    finally:
        current_run.reset(token)
    assert run_fields() == {}
    assert "run_id" not in line_of("x")


def test_the_context_of_a_worker_names_it() -> None:
    assert worker_context("w@1").run(run_fields) == {"worker": "w@1"}
    assert run_fields() == {}


async def test_lines_of_a_handler_name_its_worker(harness: Harness, working: Start) -> None:
    seen: list[dict[str, object]] = []

    @harness.app.job
    async def work() -> None:
        seen.append(run_fields())

    @harness.app.job
    def in_a_thread() -> None:
        seen.append(run_fields())

    runs = [await harness.enqueue(job) for job in (work, in_a_thread)]
    real = await working(harness)
    for run in runs:
        await real.has_state(run, RunState.SUCCEEDED)
    assert [fields["worker"] for fields in seen] == [real.worker.info.id] * 2


async def test_runs_are_logged_for_those_who_want_it(
    harness: Harness, working: Start, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.app.job(max_attempts=1)
    async def work(fails: bool) -> None:
        if fails:
            raise LookupError("nothing there")

    caplog.set_level(logging.INFO)
    real = await working(harness, log_runs=True)
    runs = []
    for fails in (False, True):
        runs.append(await harness.enqueue(work, fails=fails))
        await real.has_state(runs[-1], RunState.FAILED if fails else RunState.SUCCEEDED)
    told = [(r.name, r.levelname, vars(r).get("attempt")) for r in caplog.records if "run_id" in vars(r)]
    assert told == [
        ("rota.run", "INFO", 1),
        ("rota.run", "INFO", 1),
        ("rota.run", "INFO", 1),
        ("rota.run", "INFO", 1),
        ("rota.worker", "WARNING", 1),
    ]
    begins, done = (record for record in caplog.records[:2])
    assert begins.getMessage().endswith("of work begins, attempt 1")
    assert vars(done)["duration_ms"] >= 0
    assert " raised after " in caplog.records[3].getMessage()
    assert await harness.client.logs(runs[1].id) == [], "what the worker says is not what the run says"


async def test_by_default_a_run_is_no_line(harness: Harness, working: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run = await harness.enqueue("work")
    real = await working(harness)
    await real.has_state(run, RunState.SUCCEEDED)
    assert [record for record in caplog.records if record.name == "rota.run"] == []
    assert real.worker._executor._call == real.worker._executor._calls.call


def test_text_is_as_it_was() -> None:
    record = log.makeRecord("shop", logging.INFO, "shop.py", 1, "sold %d", (3,), None)
    record.created, record.msecs = 1_767_225_600.5, 500
    assert text_lines().format(record) == "2026-01-01T00:00:00.500Z INFO    shop: sold 3"
    record.msg = "\x1b]0;a title\x07 of %d\n\tnext\r\x9b2J é"
    assert text_lines().format(record).partition(": ")[2] == "\\x1b]0;a title\\x07 of 3\n\tnext\\x0d\\x9b2J é"
