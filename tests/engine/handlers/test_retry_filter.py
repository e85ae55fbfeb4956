"""Test `retry_on` and `no_retry_on`: which exceptions of a handler are retried, wherever it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rota import Invalid, Retry, Rota, RunState
from rota.testing import Harness
from tests.support.jobs import filtered_jobs
from tests.support.runs.real_worker import Working

Start = Callable[..., Awaitable[Working]]


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def failing_later(error: Exception) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise error

    return fail


def failing_in_a_coroutine(error: Exception) -> Callable[[], Any]:
    """Return a plain function that returns a coroutine, as some decorators do."""
    later = failing_later(error)

    def fail() -> Awaitable[None]:
        return later()

    return fail


@pytest.mark.parametrize("kind", [failing, failing_later, failing_in_a_coroutine])
@pytest.mark.parametrize(
    ("options", "error", "retried"),
    [
        ({}, ValueError("x"), True),
        ({"retry_on": ConnectionError}, ConnectionResetError("x"), True),
        ({"retry_on": (ConnectionError, KeyError)}, ValueError("x"), False),
        ({"no_retry_on": [ValueError]}, UnicodeError("x"), False),
        ({"no_retry_on": ValueError}, KeyError("x"), True),
        ({"retry_on": (OSError,), "no_retry_on": (FileNotFoundError,)}, FileNotFoundError("x"), False),
        ({"retry_on": (OSError,), "no_retry_on": (FileNotFoundError,)}, PermissionError("x"), True),
        ({"retry_on": OSError}, Retry("the handler decides"), True),
        ({"retry_on": ()}, OSError("x"), False),
    ],
)
async def test_which_exceptions_are_retried(
    either: Harness, kind: Callable[[Exception], Any], options: Any, error: Exception, retried: bool
) -> None:
    either.app.job(name="work", local_retries=0, **options)(kind(error))
    run = await either.enqueue("work")
    await either.drain()
    after = await either.run(run)
    assert after.state is (RunState.SCHEDULED if retried else RunState.FAILED)
    (attempt,) = await either.attempts(run)
    assert attempt.error is not None
    assert (attempt.error.type, attempt.error.message) == (type(error).__name__, str(error))


async def test_what_is_not_retried_is_not_repeated_in_the_attempt_either(harness: Harness) -> None:
    calls: list[int] = []

    @harness.app.job(no_retry_on=ValueError, local_retries=5)
    def work() -> None:
        calls.append(1)
        raise ValueError

    await harness.enqueue(work)
    await harness.drain()
    assert calls == [1]


async def test_in_a_process_of_its_own(harness: Harness, working: Start) -> None:
    for job in (filtered_jobs.refused, filtered_jobs.repeated):
        harness.app.registry.add(job.handler)
    refused, repeated = await harness.enqueue("refused"), await harness.enqueue("repeated")
    worker = await working(harness)
    failed = await worker.has_state(refused, RunState.FAILED)
    assert (failed.attempt, failed.error.type if failed.error else None) == (1, "KeyError")
    await worker.has_state(repeated, RunState.SCHEDULED)


@pytest.mark.parametrize("value", [int, "ValueError", (ValueError, 3), KeyboardInterrupt, {"a": 1}])
@pytest.mark.parametrize("option", ["retry_on", "no_retry_on"])
def test_only_classes_of_exceptions_are_accepted(option: str, value: Any) -> None:
    options: Any = {option: value}
    app = Rota("sqlite:///never-opened.db")
    with pytest.raises(Invalid, match=f"{option} must be classes of exceptions.*{option}="):
        app.job(**options)(failing(ValueError()))
    assert app.registry.names() == []


@pytest.mark.parametrize("option", ["retry_on", "no_retry_on"])
def test_a_pipeline_has_no_function_to_filter(option: str) -> None:
    options: Any = {option: ValueError}
    with pytest.raises(Invalid, match=f"cannot have {option}"):
        Rota("sqlite:///never-opened.db").pipeline("parts", [{"step": "a", "job": "b"}], **options)
