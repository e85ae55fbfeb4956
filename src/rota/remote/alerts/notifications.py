"""`client.notifications` over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.core.alerts.notifications import NotificationView, checked_notification
from rota.remote.decode import items, read
from rota.remote.transport import Transport, path_of
from rota.values.json import Json
from rota.values.names import checked_name


class _Sent(msgspec.Struct):
    sent: Any


class RemoteNotifications:
    """Notifications by webhook or e-mail. Changes take effect at once, in every process. Secrets are never returned."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self, name: str, *, owner: str = "api", actor: str | None = None, **options: Any
    ) -> NotificationView:
        """Create a notification that sends the events `on` ("failure", …) to `to`, a URL or a `mailto:` address.

        `jobs` and `schedules` limit it to those; without either it covers everything. `secret` signs webhooks,
        `include_payload` also sends payloads, and `at_most` limits deliveries per hour and job.
        """
        checked_name(name, "notification name")
        checked_notification(name, options)
        body = {**options, "name": name}
        answer = await self._transport.ask("POST", path_of("notifications"), {"owner": owner}, body)
        return read(answer.body, NotificationView)

    async def update(
        self, name: str, *, enabled: bool | None = None, actor: str | None = None, **options: Any
    ) -> NotificationView:
        """Change the given options of a notification; None resets an option to its default. From then on, declarations
        in code no longer change it."""
        body = options if enabled is None else {**options, "enabled": enabled}
        answer = await self._transport.ask("PATCH", path_of("notifications", name), body=body, again=True)
        return read(answer.body, NotificationView)

    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """Delete a notification. Deliveries that are already enqueued fail. One declared in code returns at the next
        start."""
        await self._transport.ask("DELETE", path_of("notifications", name))

    async def get(self, name: str) -> NotificationView:
        """Return a notification by name."""
        return read((await self._transport.ask("GET", path_of("notifications", name))).body, NotificationView)

    async def list(self) -> Sequence[NotificationView]:
        """List notifications by name."""
        return items((await self._transport.ask("GET", path_of("notifications"))).body, NotificationView)

    async def test(self, name: str) -> Json:
        """Send a test notification now, from the server, and return the delivery's result; raise `Unavailable` if it
        fails."""
        return read((await self._transport.ask("POST", path_of("notifications", name, "test"))).body, _Sent).sent
