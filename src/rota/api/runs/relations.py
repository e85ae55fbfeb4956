"""`/api/v1/runs/{id}/…`: which runs it follows, which follow it, who does its parts, and who may."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import shown
from rota.api.docs.examples import RELATED, REPLICA, RUN
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.api.runs.runs import run_of
from rota.core.access.roles import Role
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.run import Run
from rota.core.workers.replicas import Replica


class RestrictBody(msgspec.Struct, forbid_unknown_fields=True):
    """`null`: workers of any name."""

    only_workers: Annotated[list[str], msgspec.Meta(max_length=500)] | None


@operation(Role.VIEWER, answers=RelatedRun, lists=True, gives=RELATED)
async def list_parents(request: Request) -> Response:
    """The runs that a run follows, in the order given."""
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(page(await client.parents(run.id)))


@operation(Role.VIEWER, answers=RelatedRun, lists=True, gives=RELATED)
async def list_children(request: Request) -> Response:
    """The runs that follow a run, the oldest first."""
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(page(await client.children(run.id)))


@operation(Role.VIEWER, answers=Replica, lists=True, gives=REPLICA)
async def list_replicas(request: Request) -> Response:
    """The parts of a run that several workers do, each a run of its own: whose it is, and how far."""
    client = await client_of(request)
    return answer(page(await client.replicas((await run_of(request, client)).id)))


@operation(Role.OPERATOR, body=RestrictBody, answers=Run, takes={"only_workers": ["gpu-1"]}, gives=RUN)
async def restrict_run(request: Request) -> Response:
    """Let only workers of these names have a run; from others that have it, it is taken away."""
    body = shaped(await json_body(request), RestrictBody)
    client = await client_of(request)
    run = await run_of(request, client)
    restricted = await client.restrict(run.id, body.only_workers, actor=identity_of(request).actor)
    return answer(shown(request, restricted))


ROUTES = [
    declared("/runs/{id}/parents", GET=list_parents, scoped=True),
    declared("/runs/{id}/children", GET=list_children, scoped=True),
    declared("/runs/{id}/replicas", GET=list_replicas, scoped=True),
    declared("/runs/{id}/restrict", POST=restrict_run, scoped=True),
]
