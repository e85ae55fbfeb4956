"""Test that every request of a handler in a child process gets an answer, whatever happens in the worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
import pytest

from rota import RunState
from rota.core.progress.control_flow import Cancelled
from rota.engine.handlers.attempt import Attempt
from rota.engine.handlers.context_backend import WorkerBackend
from rota.engine.isolation.answer import answer
from rota.engine.isolation.child_backend import ChildAnswer, ChildRequest
from rota.errors import Invalid, LeaseLost, Unavailable
from rota.testing import Harness
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import Working

Start = Callable[..., Awaitable[Working]]


class FailingDesk:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def flush(self) -> None:
        raise self._error


class Somebodys:
    run_id = "1"


class Nobody:
    claim = Somebodys


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("a bug"), ""),
        (KeyError("step"), ""),
        (Invalid("no"), "Invalid"),
        (Cancelled("stop"), "Cancelled"),
        (LeaseLost("1", 1), "LeaseLost"),
        (Unavailable("away"), "Unavailable"),
    ],
)
async def test_an_error_is_an_answer(error: BaseException, kind: str) -> None:
    backend, attempt = cast("WorkerBackend", FailingDesk(error)), cast("Attempt", Nobody)
    no, body = await answer(backend, attempt, msgspec.json.encode(ChildRequest(7, "flush")))
    told = msgspec.json.decode(body, type=ChildAnswer)
    assert (no, told.refusal, told.kind) == (7, str(error), kind)


async def test_a_bug_in_the_worker_ends_the_attempt_and_leaves_nobody_waiting(
    harness: Harness, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(WorkerBackend, "open_step", broken)
    harness.app.job(isolation="process", max_attempts=1)(isolated_jobs.two_steps)
    run = await harness.enqueue("two_steps")
    worker = await working(harness)
    await worker.has_state(run, RunState.FAILED)
