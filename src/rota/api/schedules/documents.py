"""`/api/v1/schedules:apply`, `…:preview` and `…/verify`: apply and preview documents, verify ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.http.rejection import BadBody
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of, json_body, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.api.schedules.schedules import PreviewQuery
from rota.core.access.roles import Role
from rota.core.ledger.verify import Verification
from rota.core.schedules.diff import Difference
from rota.core.schedules.preview import DocumentPreview
from rota.errors import BadPayload
from rota.verbs.examples import FIRE, SCHEDULE_BODY

_MOST = 10_000


class ApplyBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Schedules of `owner` that no document names are deleted. `dry_run` only returns what would change."""

    owner: str
    documents: Annotated[list[dict[str, Any]], msgspec.Meta(max_length=_MOST)]
    dry_run: bool = False


class VerifyQuery(msgspec.Struct):
    """`thorough` also checks each run."""

    thorough: bool = True


@operation(
    Role.ADMIN,
    body=ApplyBody,
    answers=Difference,
    lists=True,
    takes={"owner": "team-a", "documents": [SCHEDULE_BODY], "dry_run": True},
)
async def apply_documents(request: Request) -> Response:
    """Create, update and delete the schedules of an owner to match documents; return what changed."""
    body = shaped(await json_body(request), ApplyBody)
    schedules, actor = (await client_of(request)).schedules, identity_of(request).actor
    try:
        if body.dry_run:
            return answer(page(await schedules.plan_documents(body.documents, body.owner)))
        return answer(page(await schedules.apply_documents(body.documents, body.owner, actor=actor)))
    except BadPayload as error:
        error.path = f"$.documents{_place(error, body.documents)}.payload{error.path[1:]}"
        raise


def _place(error: BadPayload, documents: Sequence[dict[str, Any]]) -> str:
    """Return the index of the document that the error is about; its message names the schedule."""
    places = (
        place for place, document in enumerate(documents) if f"schedule {document.get('name')!r}:" in error.message
    )
    return f"[{next(places, 0)}]"


@operation(
    Role.VIEWER,
    query=PreviewQuery,
    body=dict[str, Any],
    answers=DocumentPreview,
    takes={"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"},
    gives={"rule": "weekdays at 09:00, Europe/Berlin", "timezone": "Europe/Berlin", "fires": [FIRE], "problems": []},
)
async def preview_document(request: Request) -> Response:
    """Preview when a schedule document would fire, and what is wrong with it; nothing is stored.

    Without `job`, only the fields that decide when it fires are checked.
    """
    document = await json_body(request)
    if not isinstance(document, dict):
        raise BadBody("$", "must be an object")
    query = checked_query(request, PreviewQuery)
    client = await client_of(request)
    return answer(await client.schedules.preview_document(document, query.n, after=query.after))


@operation(Role.VIEWER, query=VerifyQuery, answers=Verification)
async def verify_schedule(request: Request) -> Response:
    """Verify that every plan time of a schedule is accounted for exactly once."""
    thorough = checked_query(request, VerifyQuery).thorough
    client = await client_of(request)
    return answer(await client.schedules.verify(request.path_params["name"], thorough=thorough))


ROUTES = [
    declared("/schedules:apply", POST=apply_documents),
    declared("/schedules:preview", POST=preview_document),
    declared("/schedules/{name}/verify", GET=verify_schedule),
]
