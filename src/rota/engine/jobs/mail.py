"""Send e-mail over SMTP. No text can add headers to a message."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from collections.abc import Sequence
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from rota.engine.jobs.http_client import NotSent
from rota.errors import BadConfig

_TIMEOUT = 20.0
_PORTS = {"smtp": 25, "smtps": 465}


class Server(msgspec.Struct, frozen=True):
    """An SMTP server and its credentials."""

    host: str
    port: int
    tls: bool = False
    starttls: bool = False
    user: str | None = None
    password: str | None = None


def server_of(url: str) -> Server:
    """Parse `smtp://user:password@host:587?starttls=1` or `smtps://…`. Errors never contain the password."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise BadConfig("the port in smtp_url is invalid") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise BadConfig("smtp_url must be smtp://host or smtps://host", hint="smtp://user:…@host:587?starttls=1")
    user = None if parts.username is None else unquote(parts.username)
    password = None if parts.password is None else unquote(parts.password)
    starttls = parse_qs(parts.query).get("starttls", ["0"])[-1] in ("1", "true", "yes")
    return Server(parts.hostname, port, parts.scheme == "smtps", starttls, user, password)


def message(id: str, at: datetime, sender: str, to: Sequence[str], subject: str, text: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Subject"] = subject
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{id}@rota>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(text.encode(errors="replace").decode())
    return mail


async def mail(server: Server, message: EmailMessage) -> None:
    try:
        await asyncio.to_thread(_mail, server, message)
    except smtplib.SMTPResponseException as error:
        raise NotSent(f"{server.host} answered {error.smtp_code} {_text(error.smtp_error)}") from None
    except smtplib.SMTPRecipientsRefused as error:
        code, reply = next(iter(error.recipients.values()))
        raise NotSent(f"{server.host} refused every recipient: {code} {_text(reply)}") from None
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(f"{server.host}: {type(error).__name__}: {error}"[:500]) from None


def _mail(server: Server, message: EmailMessage) -> None:
    context = ssl.create_default_context()
    with (
        smtplib.SMTP_SSL(server.host, server.port, timeout=_TIMEOUT, context=context)
        if server.tls
        else smtplib.SMTP(server.host, server.port, timeout=_TIMEOUT)
    ) as connection:
        if server.starttls:
            connection.starttls(context=context)
        if server.user is not None:
            connection.login(server.user, server.password or "")
        connection.send_message(message)


def _text(reply: bytes | str) -> str:
    return (reply.decode(errors="replace") if isinstance(reply, bytes) else reply)[:200]
