"""`/api/v1/queues`: list queues with their depth; pause and resume them."""

from __future__ import annotations

from datetime import datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.jobs.jobs import JobReasonBody
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.client.client import Client
from rota.core.access.roles import Role
from rota.core.jobs.queues import Pause, with_empty_queues
from rota.verbs.examples import QUEUE


class Queue(msgspec.Struct):
    """`oldest_at` is since when the longest-waiting run has been claimable; null if there is none."""

    queue: str
    running: int
    queued: int
    scheduled: int
    paused: Pause | None
    oldest_at: datetime | None = None


class ResumedQueue(Queue, kw_only=True):
    """`was_paused` says whether the queue was paused before."""

    was_paused: bool


async def _queues(client: Client) -> list[Queue]:
    """Return all queues, including empty ones that jobs name or that are paused."""
    paused = {pause.name: pause for pause in await client.paused_queues()}
    counts = {count[0]: count for count in with_empty_queues(await client.queues(), await client.jobs())}
    oldest = await client.monitoring.oldest_queued()
    names = sorted({*counts, *paused})
    return [Queue(*counts.get(name, (name, 0, 0, 0)), paused.get(name), oldest.get(name)) for name in names]


@operation(Role.VIEWER, answers=Queue, lists=True, gives=QUEUE)
async def list_queues(request: Request) -> Response:
    """List queues by name, with their running, queued and scheduled runs."""
    return answer(page(await _queues(await client_of(request))))


@operation(Role.OPERATOR, body=JobReasonBody, body_optional=True, answers=Queue, takes={"reason": "the relay is down"})
async def pause_queue(request: Request) -> Response:
    """Pause a queue.

    Nothing is claimed from it until it is resumed. Running runs continue.
    """
    body = shaped(await json_body(request, default={}), JobReasonBody)
    client, name = await client_of(request), request.path_params["name"]
    await client.pause_queue(name, reason=body.reason, actor=identity_of(request).actor)
    return answer(await _queue(client, name))


@operation(Role.OPERATOR, answers=ResumedQueue, gives={**QUEUE, "was_paused": True})
async def resume_queue(request: Request) -> Response:
    """Resume a queue."""
    client, name = await client_of(request), request.path_params["name"]
    was_paused = await client.resume_queue(name, actor=identity_of(request).actor)
    queue = await _queue(client, name)
    return answer(ResumedQueue(**msgspec.structs.asdict(queue), was_paused=was_paused))


async def _queue(client: Client, name: str) -> Queue:
    return next((queue for queue in await _queues(client) if queue.queue == name), Queue(name, 0, 0, 0, None))


ROUTES = [
    declared("/queues", GET=list_queues),
    declared("/queues/{name}/pause", POST=pause_queue),
    declared("/queues/{name}/resume", POST=resume_queue),
]
