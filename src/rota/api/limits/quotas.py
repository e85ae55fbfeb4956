"""`/api/v1/quotas`: limits of a scope, or of each scope of a kind, over all jobs."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.docs.examples import QUOTA
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.core.access.roles import Role
from rota.core.limits.quotas import QuotaOf

Many = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]


class QuotaBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`rate` is how many runs may start in how long: `"1000/1h"`."""

    max_concurrency: Many | None = None
    max_queued: Many | None = None
    rate: str | None = None


@operation(Role.VIEWER, answers=QuotaOf, lists=True, gives=QUOTA)
async def list_quotas(request: Request) -> Response:
    """List quotas.

    `id` is null for the quota of each scope of a kind.
    """
    return answer(page(await (await client_of(request)).quotas.list()))


async def _get(request: Request) -> Response:
    return answer(await (await client_of(request)).quotas.get(*_place(request)))


async def _update(request: Request) -> Response:
    body = shaped(await json_body(request), QuotaBody)
    client = await client_of(request)
    quota = msgspec.structs.asdict(body)
    return answer(await client.quotas.update(*_place(request), actor=identity_of(request).actor, **quota))


async def _delete(request: Request) -> Response:
    await (await client_of(request)).quotas.delete(*_place(request), actor=identity_of(request).actor)
    return Response(status_code=204)


def _place(request: Request) -> tuple[str, str | None]:
    return request.path_params["kind"], request.path_params.get("id")


@operation(Role.VIEWER, answers=QuotaOf, gives={**QUOTA, "id": None})
async def get_quota_of_kind(request: Request) -> Response:
    """Get the quota of a kind of scope.

    It applies to each scope of that kind that has no quota of its own.
    """
    return await _get(request)


@operation(Role.ADMIN, body=QuotaBody, answers=QuotaOf, takes={"max_concurrency": 5}, gives={**QUOTA, "id": None})
async def update_quota_of_kind(request: Request) -> Response:
    """Set the quota of a kind of scope.

    It also applies to runs that already wait or run.
    """
    return await _update(request)


@operation(Role.ADMIN, status=204)
async def delete_quota_of_kind(request: Request) -> Response:
    """Delete the quota of a kind of scope."""
    return await _delete(request)


@operation(Role.VIEWER, answers=QuotaOf, gives=QUOTA)
async def get_quota(request: Request) -> Response:
    """Get the quota of one scope."""
    return await _get(request)


@operation(Role.ADMIN, body=QuotaBody, answers=QuotaOf, takes={"max_queued": 100, "rate": "1000/1h"}, gives=QUOTA)
async def update_quota(request: Request) -> Response:
    """Set the quota of one scope, which overrides that of its kind."""
    return await _update(request)


@operation(Role.ADMIN, status=204)
async def delete_quota(request: Request) -> Response:
    """Delete the quota of one scope.

    The scope falls under the quota of its kind, if there is one.
    """
    return await _delete(request)


ROUTES = [
    declared("/quotas", GET=list_quotas),
    declared("/quotas/{kind}", GET=get_quota_of_kind, PUT=update_quota_of_kind, DELETE=delete_quota_of_kind),
    declared("/quotas/{kind}/{id}", GET=get_quota, PUT=update_quota, DELETE=delete_quota),
]
