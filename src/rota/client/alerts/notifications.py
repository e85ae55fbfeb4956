"""`client.notifications`: who is notified of which events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.alerts.notifications import (
    NewNotification,
    NotificationChanges,
    NotificationView,
    checked_notification,
    trial_of,
)
from rota.errors import UnknownNotification
from rota.values.actor import checked_actor
from rota.values.json import Json
from rota.values.names import checked_name
from rota.verbs.examples import NOTIFICATION
from rota.verbs.pages import Page
from rota.verbs.verb import verb
from rota.verbs.wire import answer_field

if TYPE_CHECKING:
    from rota.engine.jobs.notify import Deliveries
    from rota.store import Store

_NEW = {"name": "ops", "on": ["failure"], "to": "https://example.com/hook", "jobs": ["crawl"]}
_SENT = answer_field("sent", Any, "Sent", "Result of a delivery, such as the status of an HTTP response")


class NotificationsClient:
    """Notifications by webhook or e-mail. Changes take effect at once, in every process. Secrets are never returned."""

    def __init__(self, store: Store, deliveries: Deliveries) -> None:
        self._store = store
        self._deliveries = deliveries

    @verb(
        "POST", "/notifications", Role.ADMIN, query=("owner",), status=201, location="/notifications/{name}",
        takes=_NEW, gives=NOTIFICATION,
    )  # fmt: skip
    async def create(
        self,
        name: Annotated[str, Meta(description="Its name")],
        *,
        owner: Annotated[str, Meta(description="To whom it belongs")] = "api",
        actor: str | None = None,
        **options: Unpack[NewNotification],
    ) -> NotificationView:
        """Create a notification that sends the events `on` ("failure", …) to `to`, a URL or a `mailto:` address.

        `jobs` and `schedules` limit it to those; without either it covers everything. `secret` signs webhooks,
        `include_payload` also sends payloads, and `at_most` limits deliveries per hour and job.
        """
        notification = checked_notification(checked_name(name, "notification name"), options)
        return await self._store.notifications.create(name, notification, owner, checked_actor(actor))

    @verb("PATCH", "/notifications/{name}", Role.ADMIN, repeatable=True, takes={"enabled": False}, gives=NOTIFICATION)
    async def update(
        self, name: str, *, actor: str | None = None, **options: Unpack[NotificationChanges]
    ) -> NotificationView:
        """Change the given options of a notification; None resets an option to its default. From then on, declarations
        in code no longer change it."""
        enabled = options.pop("enabled", None)
        return await self._store.notifications.update(name, options, enabled, checked_actor(actor))

    @verb("DELETE", "/notifications/{name}", Role.ADMIN)
    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a notification. Deliveries that are already enqueued fail. One declared in code returns at the next
        start."""
        await self._store.notifications.delete(name, checked_actor(actor))

    @verb("GET", "/notifications/{name}", Role.VIEWER, gives=NOTIFICATION)
    async def get(self, name: str) -> NotificationView:
        """Return a notification by name."""
        notifications = {notification.name: notification for notification in await self.list()}
        if name not in notifications:
            raise UnknownNotification(name, notifications)
        return notifications[name]

    @verb("GET", "/notifications", Role.VIEWER, page=Page(lambda it: it.name), gives=NOTIFICATION)
    async def list(self) -> Sequence[NotificationView]:
        """List notifications by name."""
        return await self._store.notifications.list()

    @verb("POST", "/notifications/{name}/test", Role.ADMIN, answer=_SENT, gives={"sent": {"status": 204}})
    async def test(self, name: str) -> Json:
        """Send a test notification now, from this process or the server, and return the delivery's result; raise
        `Unavailable` if it fails."""
        notification, _, _ = await self._store.notifications.get(name)
        event = trial_of(name, self._store.new_id(), await self._store.now())
        return await self._deliveries.test(name, notification, event)
