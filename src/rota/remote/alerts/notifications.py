"""`client.notifications` of a server."""

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
    """Who is told of what; in force at once, everywhere. Secrets go in and do not come out again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(
        self, name: str, *, owner: str = "api", actor: str | None = None, **options: Any
    ) -> NotificationView:
        """`on` (failure), `to` a URL or a `mailto:`, of which `jobs` or `schedules`: of everything, if none is named.

        `secret` signs webhooks, `include_payload` sends payloads too, `at_most` an hour about one job.
        """
        checked_name(name, "notification name")
        checked_notification(name, options)
        body = {**options, "name": name}
        answer = await self._transport.ask("POST", path_of("notifications"), {"owner": owner}, body)
        return read(answer.body, NotificationView)

    async def update(
        self, name: str, *, enabled: bool | None = None, actor: str | None = None, **options: Any
    ) -> NotificationView:
        """Only what is given; None is its default. From then on it is the person's, and code leaves it alone."""
        body = options if enabled is None else {**options, "enabled": enabled}
        answer = await self._transport.ask("PATCH", path_of("notifications", name), body=body, again=True)
        return read(answer.body, NotificationView)

    async def delete(self, name: str, *, actor: str | None = None) -> None:
        """What is enqueued already fails; one that code declares comes back at the next start."""
        await self._transport.ask("DELETE", path_of("notifications", name))

    async def get(self, name: str) -> NotificationView:
        return read((await self._transport.ask("GET", path_of("notifications", name))).body, NotificationView)

    async def list(self) -> Sequence[NotificationView]:
        """By name."""
        return items((await self._transport.ask("GET", path_of("notifications"))).body, NotificationView)

    async def test(self, name: str) -> Json:
        """Sends one now, from the server; what came of it, or `Unavailable`."""
        return read((await self._transport.ask("POST", path_of("notifications", name, "test"))).body, _Sent).sent
