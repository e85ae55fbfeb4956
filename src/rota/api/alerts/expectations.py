"""`/api/v1/expectations`: what is expected of jobs and schedules, and which expectations are breached."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
from rota.api.operations.request import client_of, given_fields, json_body, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.core.access.roles import Role
from rota.core.alerts.expectations import OPTIONS, Expected
from rota.errors import NotExpected
from rota.verbs.examples import EXPECTED

Duration = str | None | UnsetType


class ExpectationQuery(msgspec.Struct):
    """Filter of expectations: all, or only `breached` ones."""

    breached: bool = False


class ExpectationBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`null` removes an expectation."""

    start_within: Duration = UNSET
    finish_within: Duration = UNSET
    success_every: Duration = UNSET
    max_duration: Duration = UNSET
    max_consecutive_failures: int | UnsetType | None = UNSET
    min_success_rate: float | str | UnsetType | None = UNSET
    over: int | UnsetType | None = UNSET
    at_least: int | UnsetType | None = UNSET


@operation(Role.VIEWER, query=ExpectationQuery, answers=Expected, lists=True, gives=EXPECTED)
async def list_expectations(request: Request) -> Response:
    """List expectations and their `breaches`.

    With `breached=true`, only those that are not met.
    """
    breached = checked_query(request, ExpectationQuery).breached
    return answer(page(await (await client_of(request)).expectations.list(breached=breached)))


@operation(Role.VIEWER, answers=Expected, gives=EXPECTED)
async def get_expectation(request: Request) -> Response:
    """Get the expectations of a job (`kind` is `job`) or a schedule (`schedule`)."""
    return answer(await (await client_of(request)).expectations.get(*_subject(request)))


@operation(Role.ADMIN, body=ExpectationBody, answers=Expected, takes={"success_every": "25h"}, gives=EXPECTED)
async def replace_expectation(request: Request) -> Response:
    """Replace the expectations of a job or schedule.

    Expectations that the body does not name are removed.
    """
    return await _update(request, dict.fromkeys(OPTIONS))


@operation(Role.ADMIN, body=ExpectationBody, answers=Expected, takes={"start_within": None}, gives=EXPECTED)
async def update_expectation(request: Request) -> Response:
    """Update some expectations of a job or schedule.

    Expectations that the body does not name stay as they are.
    """
    return await _update(request, {})


async def _update(request: Request, defaults: dict[str, None]) -> Response:
    changes: dict[str, Any] = given_fields(shaped(await json_body(request), ExpectationBody))
    client = await client_of(request)
    expectations = {**defaults, **changes}
    return answer(
        await client.expectations.update(*_subject(request), actor=identity_of(request).actor, **expectations)
    )


@operation(Role.ADMIN, status=204)
async def delete_expectation(request: Request) -> Response:
    """Delete the expectations of a job or schedule, which ends their breaches."""
    client = await client_of(request)
    if not await client.expectations.delete(*_subject(request), actor=identity_of(request).actor):
        raise NotExpected(*_subject(request))
    return Response(status_code=204)


def _subject(request: Request) -> tuple[str, str]:
    return request.path_params["kind"], request.path_params["name"]


ROUTES = [
    declared("/expectations", GET=list_expectations),
    declared(
        "/expectations/{kind}/{name}",
        GET=get_expectation,
        PUT=replace_expectation,
        PATCH=update_expectation,
        DELETE=delete_expectation,
    ),
]
