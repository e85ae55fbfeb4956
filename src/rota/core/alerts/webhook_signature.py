"""Signatures of what we send, after the Standard Webhooks: whoever has the secret can tell that it came from us."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import timedelta

from rota.errors import Invalid

_PREFIX = "whsec_"
_TOLERANCE = timedelta(minutes=5)


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """`timestamp` in seconds."""
    signed = b".".join((id.encode(), str(timestamp).encode(), body))
    return "v1," + base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()


def signing_headers(secret: str | None, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Without a secret, they only say which message it is, and when it was sent."""
    headers = {"webhook-id": id, "webhook-timestamp": str(timestamp)}
    return headers if secret is None else headers | {"webhook-signature": signature(secret, id, timestamp, body)}


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, *, now: float, tolerance: timedelta = _TOLERANCE
) -> bool:
    """For receivers: whether `headers` sign this body, not longer ago than `tolerance`; `now` in seconds."""
    given = {name.lower(): value for name, value in headers.items()}
    id, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()) or len(timestamp) > 15:
        return False
    if abs(now - int(timestamp)) > tolerance.total_seconds():
        return False
    wanted = signature(secret, id, int(timestamp), body).encode()
    found = given.get("webhook-signature", "").split()  # one for each secret while they are being changed
    return any(hmac.compare_digest(wanted, one.encode()) for one in found)


def checked_secret(secret: object) -> str | None:
    if secret is None:
        return None
    if not isinstance(secret, str) or not secret or len(secret) > 1_000:
        raise Invalid("a secret must be text of 1 to 1000 characters")
    _key(secret)
    return secret


def _key(secret: str) -> bytes:
    """Behind `whsec_` it is written in base64."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise Invalid(f"a secret that begins with {_PREFIX} goes on in base64") from None
