"""Jobs that send notifications: ordinary runs, with retries and history."""

from __future__ import annotations

import asyncio
import os
from typing import Any
from urllib.parse import urlsplit

import msgspec

from rota.config import Config
from rota.core.alerts.message_formats import Message, format_of, formatted, told_of
from rota.core.alerts.notifications import (
    CHANNEL,
    EMAIL,
    ENV,
    PROVIDER,
    WEBHOOK,
    Notification,
    mail_subject,
    mail_text,
    page_of,
)
from rota.core.alerts.webhook_signature import signing_headers
from rota.core.jobs.allowed_addresses import networks_of
from rota.core.progress.control_flow import Fail
from rota.engine.handlers.context import RunContext
from rota.engine.jobs.http_client import Answer, NotSent, current_client
from rota.engine.jobs.mail import mail, message, server_of
from rota.engine.jobs.plugins import CHANNELS, SECRETS, call
from rota.errors import Invalid, Unavailable, UnknownNotification
from rota.registry.jobs import Handler
from rota.registry.signature import PayloadType
from rota.store import Store
from rota.values.instants import instant
from rota.values.json import Json

_GONE = 410
_TIMEOUT = 20.0
_MOST_READ = 2_048


class Deliveries:
    """Handlers of the notification jobs.

    Recipient and secret are read at the time of sending, so that a correction applies to runs already enqueued.
    """

    def __init__(self, store: Store, config: Config) -> None:
        self._store = store
        self._config = config
        self._allowed = networks_of(config.http_allow)

    def handlers(self) -> dict[str, Handler]:
        async def deliver(notification: str, event: dict[str, Any]) -> Json:
            return await self._deliver_stored(notification, event)

        payload = PayloadType.of(deliver, RunContext)
        return {definition.name: Handler(definition, deliver, payload) for definition in (WEBHOOK, EMAIL)}

    async def _deliver_stored(self, name: str, event: dict[str, Any]) -> Json:
        try:
            stored, _, _ = await self._store.notifications.get(name)
        except UnknownNotification as error:
            raise Fail(f"{error.message} any more") from None
        return await self.deliver(stored, event)

    async def deliver(self, to: Notification, event: dict[str, Any]) -> Json:
        """Send a notification and return the run's result; raise `NotSent` if it failed."""
        if to.hook:
            raise NotSent(f"{to.hook!r} is a job of the application: it is run, not sent to")
        if base := self._config.dashboard_url:
            event = {**event, "url": base.rstrip("/") + page_of(event)}
        if to.to.startswith(CHANNEL):
            return await self._hand_on(to, event)
        return await (self._mail(to, event) if to.is_mail else self._post(to, event))

    async def _hand_on(self, to: Notification, event: dict[str, Any]) -> Json:
        try:
            await call(CHANNELS, to.to.removeprefix(CHANNEL), event)
        except Exception as error:
            if isinstance(error, NotSent | Fail):
                raise
            raise NotSent(f"{type(error).__name__}: {error}") from error
        return {"to": to.to}

    async def test(self, name: str, to: Notification, event: dict[str, Any]) -> Json:
        """Send a test of the notification `name`, and return the result; raise `Unavailable` if it failed."""
        try:
            return await self.deliver(to, event)
        except NotSent as error:
            raise Unavailable(f"notification {name!r} could not be sent: {error}") from None

    async def _post(self, to: Notification, event: dict[str, Any]) -> Json:
        secret = await secret_of(to.secret)
        if format_of(to.to) is None:
            message, now = Message(to.to, msgspec.json.encode(event)), self._store.clock.micros() // 1_000_000
            try:
                headers = signing_headers(secret, event["id"], now, message.body)
            except Invalid as error:  # a secret from the environment is validated only here
                raise NotSent(str(error)) from None
        else:
            subject = mail_subject(event).removeprefix("[rota] ")
            message, headers = formatted(to.to, event, told_of(subject, event), secret), {}
        answer = await self._ask(message.url, {**headers, "content-type": "application/json"}, message.body)
        if 200 <= answer.status < 300:
            return {"status": answer.status}
        if answer.status == _GONE:
            raise Fail(f"the receiver answered {answer.status}: it is gone permanently")
        raise NotSent(f"the receiver answered {answer.status}")

    async def _ask(self, url: str, headers: dict[str, str], body: bytes) -> Answer:
        """Send a request. Errors name no more of the URL than its host: the rest may be a secret."""
        host = urlsplit(url).hostname
        try:
            async with asyncio.timeout(_TIMEOUT), current_client(self._allowed) as client:
                return await client.ask("POST", url, headers, body, _MOST_READ)
        except TimeoutError:
            raise NotSent(f"{host} did not answer within {_TIMEOUT:g}s") from None
        except NotSent as error:
            raise NotSent(f"{host}: {error}", error.code) from None

    async def _mail(self, to: Notification, event: dict[str, Any]) -> Json:
        url, sender = self._config.smtp_url, self._config.smtp_from
        if not url or not sender:
            raise NotSent("this worker has no ROTA_SMTP_URL and ROTA_SMTP_FROM to send e-mail with")
        at = instant(self._store.clock.micros())
        email = message(event["id"], at, sender, to.addresses, mail_subject(event), mail_text(event))
        await mail(server_of(url), email)
        return {"to": to.addresses}


async def secret_of(secret: str | None) -> str | None:
    """Return the secret itself; it is looked up where it is used."""
    if secret is not None and secret.startswith(PROVIDER):
        value = await call(SECRETS, secret.removeprefix(PROVIDER))
        if not isinstance(value, str) or not value:
            raise NotSent(f"{secret} gave no secret")
        return value
    if secret is None or not secret.startswith(ENV):
        return secret
    value = os.environ.get(secret.removeprefix(ENV))
    if not value:
        raise NotSent(f"this worker has no {secret.removeprefix(ENV)} in its environment")
    return value
