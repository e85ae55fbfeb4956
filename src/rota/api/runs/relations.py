"""`/api/v1/runs/{id}/…`: parents, children and replicas of a run, and the workers it is restricted to."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import shown
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.api.runs.runs import run_of
from rota.core.access.roles import Role
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.run import Run
from rota.core.workers.replicas import Replica
from rota.verbs.examples import RELATED, REPLICA, RUN


class RestrictBody(msgspec.Struct, forbid_unknown_fields=True):
    """`null` lifts the restriction."""

    only_workers: Annotated[list[str], msgspec.Meta(max_length=500)] | None


@operation(Role.VIEWER, answers=RelatedRun, lists=True, gives=RELATED)
async def list_parents(request: Request) -> Response:
    """List the runs that a run depends on, in the order given."""
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(page(await client.parents(run.id)))


@operation(Role.VIEWER, answers=RelatedRun, lists=True, gives=RELATED)
async def list_children(request: Request) -> Response:
    """List the runs that depend on a run, oldest first."""
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(page(await client.children(run.id)))


@operation(Role.VIEWER, answers=Replica, lists=True, gives=REPLICA)
async def list_replicas(request: Request) -> Response:
    """List the replicas of a run that several workers execute.

    Each is a run of its own, with its worker and state.
    """
    client = await client_of(request)
    return answer(page(await client.replicas((await run_of(request, client)).id)))


@operation(Role.OPERATOR, body=RestrictBody, answers=Run, takes={"only_workers": ["gpu-1"]}, gives=RUN)
async def restrict_run(request: Request) -> Response:
    """Restrict a run to workers of these names.

    If another worker is executing it, that worker loses the run.
    """
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
