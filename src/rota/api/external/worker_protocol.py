"""`/api/v1/worker/…`: the worker protocol. Claims wait while their caller stays connected."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from starlette.requests import Request

from rota.api.auth.identity import identity_of
from rota.api.operations.event_stream import Streams
from rota.api.operations.verb_operation import routes_of
from rota.client.client import Client
from rota.client.external.external import ExternalClient
from rota.core.external.external import Assignment, checked_wait

_CHECK_EVERY = 1.0
"""Seconds between checks whether the caller is still connected."""


async def _claim(request: Request, client: Client, arguments: Mapping[str, Any]) -> Sequence[Assignment]:
    patience = checked_wait(arguments["wait"]).total_seconds()
    streams: Streams = request.app.state.streams
    with streams.counted(identity_of(request).actor) if patience else nullcontext():
        runs = await _claim_while_connected(request, client, arguments, patience)
    # Race: the caller may go between the claim and the response. Handing back costs no attempt; a lost lease would.
    if runs and await request.is_disconnected():
        await client.external.hand_back(runs)
    return runs


async def _claim_while_connected(
    request: Request, client: Client, arguments: Mapping[str, Any], patience: float
) -> Sequence[Assignment]:
    """Claim in short turns while the caller stays connected. A run claimed for a caller that has gone would be lost
    until its lease expires."""
    clock = asyncio.get_running_loop().time
    until, held = clock() + patience, arguments["held"]
    while True:
        remaining = max(0.0, until - clock())
        wait = timedelta(seconds=min(remaining, _CHECK_EVERY))
        runs = await client.external.claim(**{**arguments, "wait": wait, "held": held})
        over = request.app.state.streams.over.is_set()
        if runs or over or remaining <= _CHECK_EVERY or await request.is_disconnected():
            return runs
        held = None


ROUTES = routes_of(ExternalClient, "external", claim=_claim)
