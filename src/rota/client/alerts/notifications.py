"""`client.notifications`: who is notified of which events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rota.core.alerts.notifications import NotificationView, checked_notification, trial_of
from rota.errors import UnknownNotification
from rota.values.actor import checked_actor
from rota.values.json import Json
from rota.values.names import checked_name

if TYPE_CHECKING:
    from rota.engine.jobs.notify import Deliveries
    from rota.store import Store


class NotificationsClient:
    """Notifications by webhook or e-mail. Changes take effect at once, in every process. Secrets are never returned."""

    def __init__(self, store: Store, deliveries: Deliveries) -> None:
        self._store = store
        self._deliveries = deliveries

    async def create(
        self, name: str, *, owner: str = "api", actor: str | None = None, **options: Any
    ) -> NotificationView:
        """Create a notification that sends the events `on` ("failure", …) to `to`, a URL or a `mailto:` address.

        `jobs` and `schedules` limit it to those; without either it covers everything. `secret` signs webhooks,
        `include_payload` also sends payloads, and `at_most` limits deliveries per hour and job.
        """
        checked_name(name, "notification name")
        notification = checked_notification(name, options)
        await self._store.notifications.save(name, notification, owner, checked_actor(actor), new=True)
        return await self.get(name)

    async def update(
        self, name: str, *, enabled: bool | None = None, actor: str | None = None, **options: Any
    ) -> NotificationView:
        """Change the given options of a notification; None resets an option to its default. From then on, declarations
        in code no longer change it."""
        old, _, active = await self._store.notifications.get(name)
        merged = {**{field: getattr(old, field) for field in old.__struct_fields__}, **options}
        notification = checked_notification(
            name, {option: value for option, value in merged.items() if value is not None}
        )
        await self._store.notifications.save(
            name, notification, "api", checked_actor(actor), enabled=active if enabled is None else enabled, new=False
        )
        return await self.get(name)

    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a notification. Deliveries that are already enqueued fail. One declared in code returns at the next
        start."""
        if not await self._store.notifications.delete(name, checked_actor(actor)):
            raise UnknownNotification(name, [notification.name for notification in await self.list()])

    async def get(self, name: str) -> NotificationView:
        """Return a notification by name."""
        notifications = {notification.name: notification for notification in await self.list()}
        if name not in notifications:
            raise UnknownNotification(name, notifications)
        return notifications[name]

    async def list(self) -> Sequence[NotificationView]:
        """List notifications by name."""
        return await self._store.notifications.list()

    async def test(self, name: str) -> Json:
        """Send a test notification now, from this process, and return the delivery's result; raise `Unavailable` if it
        fails."""
        notification, _, _ = await self._store.notifications.get(name)
        event = trial_of(name, self._store.new_id(), await self._store.now())
        return await self._deliveries.test(name, notification, event)
