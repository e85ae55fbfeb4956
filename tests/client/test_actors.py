"""Names of rota's own policies are reserved: what a policy cancels does not count as a failure."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from rota.client.client import Client
from rota.core.calendar.triggers import every
from rota.core.states import RunState
from rota.errors import Invalid
from rota.testing import Harness

Verb = Callable[[Client, str, Any], Awaitable[object]]
VERBS: dict[str, Verb] = {
    "cancel": lambda client, run, by: client.cancel(run, **by),
    "pause_job": lambda client, _, by: client.pause_job("work", **by),
    "resume_job": lambda client, _, by: client.resume_job("work", **by),
    "cancel_job": lambda client, _, by: client.cancel_job("work", **by),
    "pause_queue": lambda client, _, by: client.pause_queue("default", **by),
    "create": lambda client, _, by: client.schedules.create("other", "work", every("1h"), **by),
    "update": lambda client, _, by: client.schedules.update("s", trigger=every("2h"), **by),
    "delete": lambda client, _, by: client.schedules.delete("s", **by),
    "restore": lambda client, _, by: _restore(client, by),
    "pause": lambda client, _, by: client.schedules.pause("s", **by),
    "resume": lambda client, _, by: client.schedules.resume("s", **by),
    "enable": lambda client, _, by: client.schedules.enable("s", **by),
    "disable": lambda client, _, by: client.schedules.disable("s", **by),
    "apply_documents": lambda client, _, by: client.schedules.apply_documents([], "file:x", **by),
}


async def _restore(client: Client, by: Any) -> object:
    if by == {"actor": "police"}:
        await client.schedules.delete("s")
    return await client.schedules.restore("s", **by)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_caller_cannot_sign_as_a_policy(verb: str) -> None:
    async with Harness() as harness:
        await harness.declare("work")
        await harness.client.schedules.create("s", "work", every("1h"))
        run = await harness.enqueue("work")
        with pytest.raises(Invalid, match="policy:"):
            await VERBS[verb](harness.client, run.id, {"actor": "policy:overlap"})
        assert await harness.state(run.id) is RunState.QUEUED
        await VERBS[verb](harness.client, run.id, {"actor": "police"})


async def test_nor_for_a_backfill() -> None:
    async with Harness() as harness:
        await harness.declare("work")
        await harness.client.schedules.create("s", "work", every("1h"))
        now = harness.clock.now()
        with pytest.raises(Invalid, match="policy:"):
            await harness.client.schedules.backfill("s", now - timedelta(hours=3), now, actor="policy:overlap")
