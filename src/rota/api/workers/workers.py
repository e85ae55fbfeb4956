"""`/api/v1/workers`: list workers, and drain, resume, stop or update them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.docs.examples import WORKER
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.core.access.roles import Role
from rota.core.workers.worker import Worker
from rota.values.durations import worded


class WorkerSettingsBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Omitted settings stay as they are."""

    slots: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    queues: dict[str, int] | list[str] | None = None
    heartbeat: str | None = None
    poll: str | None = None


@operation(Role.VIEWER, answers=Worker, lists=True, gives=WORKER)
async def list_workers(request: Request) -> Response:
    """List workers with a heartbeat within the last day, by name."""
    return answer(page([worded(worker) for worker in await (await client_of(request)).workers.list()]))


@operation(Role.VIEWER, answers=Worker, gives=WORKER)
async def get_worker(request: Request) -> Response:
    """Get a worker, by its id, the beginning of it, or its name."""
    return answer(worded(await (await client_of(request)).workers.get(request.path_params["id"])))


@operation(Role.OPERATOR, answers=Worker, lists=True, gives=WORKER)
async def drain_worker(request: Request) -> Response:
    """Drain a worker.

    It claims nothing more, finishes its runs, and stays up.
    """
    return await _ask(request, "drain")


@operation(Role.OPERATOR, answers=Worker, lists=True, gives=WORKER)
async def resume_worker(request: Request) -> Response:
    """Resume a drained worker."""
    return await _ask(request, "resume")


@operation(Role.OPERATOR, answers=Worker, lists=True, gives=WORKER)
async def stop_worker(request: Request) -> Response:
    """Stop a worker as SIGTERM does.

    Its runs get the grace period.
    """
    return await _ask(request, "stop")


async def _ask(request: Request, verb: str) -> Response:
    client = await client_of(request)
    workers = await getattr(client.workers, verb)(request.path_params["id"], actor=identity_of(request).actor)
    return answer(page([worded(worker) for worker in workers]))


@operation(Role.OPERATOR, body=WorkerSettingsBody, answers=Worker, lists=True, takes={"slots": 50}, gives=WORKER)
async def update_worker(request: Request) -> Response:
    """Update settings of a running worker."""
    body = shaped(await json_body(request), WorkerSettingsBody)
    client = await client_of(request)
    settings = msgspec.structs.asdict(body)
    workers = await client.workers.update(request.path_params["id"], actor=identity_of(request).actor, **settings)
    return answer(page([worded(worker) for worker in workers]))


ROUTES = [
    declared("/workers", GET=list_workers),
    declared("/workers/{id}", GET=get_worker, PATCH=update_worker),
    declared("/workers/{id}/drain", POST=drain_worker),
    declared("/workers/{id}/resume", POST=resume_worker),
    declared("/workers/{id}/stop", POST=stop_worker),
]
