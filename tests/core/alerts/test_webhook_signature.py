"""Signatures after the Standard Webhooks."""

import base64
import hashlib
import hmac

import pytest

from rota.core.alerts.webhook_signature import checked_secret, signature, signing_headers, verify
from rota.errors import Invalid

NOW = 1_700_000_000


def test_the_example_of_the_standard() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    found = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_in_words_is_the_key_itself() -> None:
    mac = hmac.new(b"words", b"id.5.body", hashlib.sha256).digest()
    assert signature("words", "id", 5, b"body") == "v1," + base64.b64encode(mac).decode()


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook-id": "other"}, {"webhook-timestamp": str(NOW + 1)}, {"webhook-timestamp": "x"},
        {"webhook-timestamp": "9" * 400}, {"webhook-timestamp": ""}, {"webhook-signature": ""},
        {"webhook-signature": "v1,xx"}, {"webhook-signature": "grüße"},
    ],
)  # fmt: skip
def test_only_what_was_signed_is_verified(changes: dict[str, str]) -> None:
    headers = signing_headers("secret", "id", NOW, b"body")
    assert verify("secret", headers, b"body", now=NOW)
    assert verify("secret", {name.title(): value for name, value in headers.items()}, b"body", now=NOW + 299)
    assert not verify("secret", headers | changes, b"body", now=NOW)


def test_not_another_body_secret_or_time() -> None:
    headers = signing_headers("secret", "id", NOW, b"body")
    assert not verify("secret", headers, b"bodY", now=NOW)
    assert not verify("Secret", headers, b"body", now=NOW)
    assert not verify("secret", headers, b"body", now=NOW + 301)
    assert not verify("secret", headers, b"body", now=NOW - 301)


def test_one_of_several_is_enough() -> None:
    headers = signing_headers("new", "id", NOW, b"")
    headers["webhook-signature"] += " " + signature("old", "id", NOW, b"")
    assert verify("old", headers, b"", now=NOW)


@pytest.mark.parametrize("secret", ["", 5, "whsec_not base64", "x" * 1_001])
def test_what_is_no_secret(secret: object) -> None:
    with pytest.raises(Invalid):
        checked_secret(secret)
