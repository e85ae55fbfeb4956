"""`/api/v1/worker/claim`: claim runs of external jobs, waiting for them if there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.operations.event_stream import Streams
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer
from rota.api.operations.routing import declared
from rota.client.client import Client
from rota.core.access.roles import Role
from rota.core.external.external import Assignment, checked_wait
from rota.verbs.examples import ASSIGNMENT, RUN

_CHECK_EVERY = 1.0
"""Seconds between checks whether the caller is still connected."""

Names = Annotated[list[str], msgspec.Meta(min_length=1, max_length=500)]


class HeldRun(msgspec.Struct, forbid_unknown_fields=True):
    """A run that the worker holds, with its fence."""

    id: str
    fence: int


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`worker` is a name, or `name@boot` for a program that tells its starts apart. `held` lists all runs that it knows
    of; other leases of it are handed back first, because the response of their claim was lost."""

    worker: str
    queues: Names = msgspec.field(default_factory=lambda: ["default"])
    jobs: Names | None = None
    max: int = 1
    wait: str | None = None
    lease: str | None = None
    held: Annotated[list[HeldRun], msgspec.Meta(max_length=500)] | None = None
    labels: Annotated[list[str], msgspec.Meta(max_length=100)] | None = None
    version: str | None = None


class ClaimedRuns(msgspec.Struct):
    """The claimed runs."""

    runs: Sequence[Assignment]


@operation(
    Role.WORKER,
    body=ClaimBody,
    answers=ClaimedRuns,
    takes={"worker": "scanner@7f3a", "jobs": ["label-images"], "max": 1, "wait": "20s", "held": [
        {"id": RUN["id"], "fence": 1}
    ]},
    gives={"runs": [ASSIGNMENT]},
)  # fmt: skip
async def claim_runs(request: Request) -> Response:
    """Claim up to `max` runs of external jobs.

    Without `jobs`, runs of every external job are claimed. If there are none, the server waits for `wait` (at most 30s)
    and then answers with none.
    """
    body = shaped(await json_body(request), ClaimBody)
    patience = checked_wait(body.wait).total_seconds()
    client = await client_of(request)
    streams: Streams = request.app.state.streams
    with streams.counted(identity_of(request).actor) if patience else nullcontext():
        runs = await _claim_while_connected(request, client, body, patience)
    # Race: the caller may go between the claim and the response. Handing back costs no attempt; a lost lease would.
    if runs and await request.is_disconnected():
        await client.external.hand_back(runs)
    return answer(ClaimedRuns(runs))


async def _claim_while_connected(
    request: Request, client: Client, body: ClaimBody, patience: float
) -> Sequence[Assignment]:
    """Claim in short turns while the caller stays connected. A run claimed for a caller that has gone would be lost
    until its lease expires."""
    clock = asyncio.get_running_loop().time
    until, held = clock() + patience, body.held
    while True:
        remaining = max(0.0, until - clock())
        runs = await client.external.claim(
            body.worker,
            queues=body.queues,
            jobs=body.jobs,
            max=body.max,
            wait=timedelta(seconds=min(remaining, _CHECK_EVERY)),
            lease=body.lease,
            **_description(body, held),
        )
        over = request.app.state.streams.over.is_set()
        if runs or over or remaining <= _CHECK_EVERY or await request.is_disconnected():
            return runs
        held = None


def _description(body: ClaimBody, held: Sequence[HeldRun] | None) -> dict[str, Any]:
    leases = None if held is None else [(run.id, run.fence) for run in held]
    return {"held": leases, "labels": body.labels, "version": body.version}


ROUTES = [declared("/worker/claim", POST=claim_runs)]
