"""`/api/v1/notifications`: who is notified of which events. Secrets are never returned."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.operations.operation import operation
from rota.api.operations.query import OwnerQuery, checked_query
from rota.api.operations.request import client_of, given_fields, json_body, shaped
from rota.api.operations.response import answer, at, page
from rota.api.operations.routing import declared
from rota.core.access.roles import Role
from rota.core.alerts.notifications import NotificationView
from rota.verbs.examples import NOTIFICATION

Names = Annotated[list[str], msgspec.Meta(max_length=500)]


class NotificationBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`to` is a URL or a `mailto:` address. Without `jobs` and `schedules`, it covers everything."""

    name: str
    to: str
    on: Names | str | None = None
    jobs: Names | None = None
    schedules: Names | None = None
    secret: str | None = None
    include_payload: bool | None = None
    at_most: int | None = None


class NotificationChanges(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Omitted options stay as they are; `null` resets an option to its default."""

    to: str | UnsetType = UNSET
    on: Names | str | UnsetType | None = UNSET
    jobs: Names | UnsetType | None = UNSET
    schedules: Names | UnsetType | None = UNSET
    secret: str | UnsetType | None = UNSET
    include_payload: bool | UnsetType | None = UNSET
    at_most: int | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET


class Sent(msgspec.Struct):
    """Result of a delivery, such as the status of an HTTP response."""

    sent: Any


@operation(Role.VIEWER, answers=NotificationView, lists=True, gives=NOTIFICATION)
async def list_notifications(request: Request) -> Response:
    """List notifications by name."""
    return answer(page(await (await client_of(request)).notifications.list()))


@operation(
    Role.ADMIN,
    query=OwnerQuery,
    body=NotificationBody,
    answers=NotificationView,
    status=201,
    takes={"name": "ops", "on": ["failure"], "to": "https://example.com/hook", "jobs": ["crawl"]},
    gives=NOTIFICATION,
)
async def create_notification(request: Request) -> Response:
    """Create a notification."""
    body = shaped(await json_body(request), NotificationBody)
    options = {option: value for option, value in msgspec.structs.asdict(body).items() if value is not None}
    client = await client_of(request)
    notification = await client.notifications.create(
        **options, owner=checked_query(request, OwnerQuery).owner, actor=identity_of(request).actor
    )
    return answer(notification, 201, {"location": at(f"/api/v1/notifications/{quote(notification.name, safe='')}")})


@operation(Role.VIEWER, answers=NotificationView, gives=NOTIFICATION)
async def get_notification(request: Request) -> Response:
    """Get a notification."""
    return answer(await (await client_of(request)).notifications.get(request.path_params["name"]))


@operation(Role.ADMIN, body=NotificationChanges, answers=NotificationView, takes={"enabled": False}, gives=NOTIFICATION)
async def update_notification(request: Request) -> Response:
    """Update some options of a notification.

    From then on, declarations in code no longer change it.
    """
    changes = given_fields(shaped(await json_body(request), NotificationChanges))
    client = await client_of(request)
    name, actor = request.path_params["name"], identity_of(request).actor
    return answer(await client.notifications.update(name, actor=actor, **changes))


@operation(Role.ADMIN, status=204)
async def delete_notification(request: Request) -> Response:
    """Delete a notification.

    Deliveries that are already enqueued fail.
    """
    client = await client_of(request)
    await client.notifications.delete(request.path_params["name"], actor=identity_of(request).actor)
    return Response(status_code=204)


@operation(Role.ADMIN, answers=Sent, gives={"sent": {"status": 204}})
async def test_notification(request: Request) -> Response:
    """Send a test notification now, from the server.

    503 if the delivery fails.
    """
    client = await client_of(request)
    return answer(Sent(await client.notifications.test(request.path_params["name"])))


ROUTES = [
    declared("/notifications", GET=list_notifications, POST=create_notification),
    declared("/notifications/{name}", GET=get_notification, PATCH=update_notification, DELETE=delete_notification),
    declared("/notifications/{name}/test", POST=test_notification),
]
