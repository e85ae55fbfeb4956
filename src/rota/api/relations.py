"""`/api/v1/runs/{id}/…`: the runs that a run follows, that follow it, and who may or does have it."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.answers import answer, page
from rota.api.examples import RUN
from rota.api.identity import identity_of
from rota.api.operations import operation
from rota.api.requests import client_of, json_body, shaped
from rota.api.routing import declared
from rota.api.runs import run_of
from rota.core.access import Role
from rota.core.dependencies import Related
from rota.core.model import Run
from rota.core.replicas import Replica


class RestrictBody(msgspec.Struct, forbid_unknown_fields=True):
    """Names of workers; `null`: any."""

    only_workers: list[str] | None


@operation(Role.VIEWER, answers=Related, lists=True)
async def list_parents(request: Request) -> Response:
    """The runs that a run follows, or has followed, in the order given."""
    client = await client_of(request)
    return answer(page(await client.parents((await run_of(request, client)).id)))


@operation(Role.VIEWER, answers=Related, lists=True)
async def list_children(request: Request) -> Response:
    """The runs that follow a run, the oldest first."""
    client = await client_of(request)
    return answer(page(await client.children((await run_of(request, client)).id)))


@operation(Role.VIEWER, answers=Replica, lists=True)
async def list_replicas(request: Request) -> Response:
    """The replicas of a run that several workers do: whose each is, and how far."""
    client = await client_of(request)
    return answer(page(await client.replicas((await run_of(request, client)).id)))


@operation(Role.OPERATOR, body=RestrictBody, answers=Run, takes={"only_workers": ["gpu-1", "gpu-2"]}, gives=RUN)
async def restrict_run(request: Request) -> Response:
    """Let only workers of these names have a run; from others that have it, it is taken away."""
    body = shaped(await json_body(request), RestrictBody)
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(await client.restrict(run.id, body.only_workers, actor=identity_of(request).actor))


ROUTES = [
    declared("/runs/{id}/parents", GET=list_parents, scoped=True),
    declared("/runs/{id}/children", GET=list_children, scoped=True),
    declared("/runs/{id}/replicas", GET=list_replicas, scoped=True),
    declared("/runs/{id}/restrict", POST=restrict_run, scoped=True),
]
