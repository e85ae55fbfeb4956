"""Test that every unsuccessful end with an error has a fingerprint, whoever reports it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from rota import Fail, RunError, RunState
from rota.client.client import Order
from rota.core.runs.error_fingerprint import fingerprint_of
from rota.store.databases.database import Row, Tx
from rota.testing import Harness
from tests.support.jobs import isolated_jobs
from tests.support.runs.real_worker import SECOND, Working

Start = Callable[..., Awaitable[Working]]


async def error_of(harness: Harness, run: Any) -> RunError:
    """Return the error of a run that has ended; check that the database has the same fingerprint."""
    ended = await harness.run(run)
    assert ended.error is not None

    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql("select state, fingerprint from rota_fault where run_id = :id", id=ended.id))

    assert await harness.store.database.read(body) == [(ended.state.value, ended.error.fingerprint)]
    assert ended.error.fingerprint is not None
    return ended.error


async def test_of_a_handler_of_each_kind(either: Harness, working: Start) -> None:
    @either.app.job(max_attempts=1)
    def plain(n: int) -> None:
        raise ValueError(f"item {n} is bad")

    @either.app.job(max_attempts=1)
    async def coroutine(n: int) -> None:
        raise Fail(f"item {n} is bad")

    @either.app.job(max_attempts=1, timeout="20ms")
    async def slow(n: int) -> None:
        await asyncio.Event().wait()

    runs = [[await either.enqueue(job, {}, n=n) for n in (1, 2)] for job in (plain, coroutine, slow)]
    real = await working(either)
    found = set()
    for one, other in runs:
        state = RunState.TIMED_OUT if one == runs[-1][0] else RunState.FAILED
        await real.has_state(one, state)
        await real.has_state(other, state)
        first, second = await error_of(either, one), await error_of(either, other)
        assert first.fingerprint == second.fingerprint
        found.add(first.fingerprint)
    assert len(found) == 3


async def test_of_a_handler_in_a_child_process(harness: Harness, working: Start) -> None:
    job = harness.app.job(isolation="process", max_attempts=1)(isolated_jobs.fail_with)
    runs = [await harness.enqueue(job, {}, message=f"item {n}") for n in (1, 2)]
    real = await working(harness)
    for run in runs:
        await real.has_state(run, RunState.FAILED)
    one, other = [await error_of(harness, run) for run in runs]
    assert one.fingerprint == other.fingerprint != fingerprint_of(RunError(one.type, one.message))  # it has a place


async def test_a_secret_is_no_part_of_it(harness: Harness, working: Start) -> None:
    @harness.app.job(max_attempts=1)
    def login(password: str) -> None:
        raise PermissionError(f"login with {password} was refused")

    runs = [await harness.enqueue(login, {}, password=password) for password in ("swordfish", "herring")]
    real = await working(harness)
    for run in runs:
        await real.has_state(run, RunState.FAILED)
    one, other = [await error_of(harness, run) for run in runs]
    assert one.message != other.message
    assert one.fingerprint == other.fingerprint


async def test_of_what_somebody_outside_says(either: Harness) -> None:
    either.app.external("label", max_attempts=1)
    await either.store.save_jobs(either.app.registry.definitions())
    found = []
    for error in ("page 1 is bad", {"message": "page 2 is bad"}, RunError("Failed", "page 3 is bad", fingerprint="x")):
        run = (await either.client.enqueue(Order("label", {}, {}))).id
        (held,) = await either.client.external.claim("gpu")
        await either.client.external.fail(run, held.fence, error)
        found.append((await error_of(either, run)).fingerprint)
    assert found == [fingerprint_of(RunError("Failed", "page 4 is bad"))] * 3


async def test_what_somebody_outside_says_is_not_told_apart_by_a_secret(either: Harness) -> None:
    """Else whoever may not see it could try out what it is."""
    either.app.external("label", max_attempts=1, steps=["look"])
    await either.store.save_jobs(either.app.registry.definitions())
    ended, steps = [], []
    for secret in ("tiger", "zebra"):
        run = (await either.client.enqueue(Order("label", {"password": secret}, {}))).id
        (held,) = await either.client.external.claim("gpu")
        await either.client.external.step(run, held.fence, "look", "failed", error=f"{secret} is refused")
        await either.client.external.fail(run, held.fence, f"{secret} is refused")
        error = await error_of(either, run)
        assert error.message == f"{secret} is refused"
        ended.append(error.fingerprint)
        steps += [step.error.fingerprint for step in await either.client.steps(run)]
    assert len({*ended, *steps}) == 1
    assert len(steps) == 2


async def test_of_a_deadline_outside(either: Harness) -> None:
    await either.declare("ask", max_attempts=1)
    run = await either.enqueue("ask")
    await (await either.worker("a").claim()).wait_for_external("1h")
    either.clock.advance("61m")
    await either.reaper.step()
    assert (await error_of(either, run)).type == "TimedOut"


async def test_of_a_lost_lease(either: Harness) -> None:
    await either.declare("careful", on_lost="fail")
    found = set()
    for name in ("a", "b"):
        run = await either.enqueue("careful")
        await either.worker(name).claim()
        either.clock.advance(either.lease + SECOND)
        await either.reaper.step()
        assert await either.state(run) is RunState.EXPIRED
        found.add((await error_of(either, run)).fingerprint)
    assert len(found) == 1


async def test_a_success_has_no_error_and_is_no_fault(either: Harness, working: Start) -> None:
    @either.app.job
    def fine() -> None: ...

    run = await either.enqueue(fine)
    await (await working(either)).has_state(run, RunState.SUCCEEDED)

    async def body(tx: Tx) -> list[Row]:
        return list(await tx.fetch_sql("select run_id from rota_fault"))

    assert await either.store.database.read(body) == []
