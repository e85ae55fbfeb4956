"""Redaction: which names suggest a secret, and where its value is hidden."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.secrets import MASK
from rota.core.runs.redaction import concealed, masked, names_secret


@pytest.mark.parametrize(
    "name",
    ["password", "db_password", "PASSWORD", "userPassword", "password_hash", "secret", "client-secret", "token",
     "accessToken", "access_token", "api_key", "apiKey", "API-KEY", "X-Api-Key", "apikey", "private_key",
     "Authorization", "credentials", "session_cookie", "passphrase", "id_token", "JWT"],
)  # fmt: skip
def test_secrets(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize(
    "name",
    ["", "name", "author", "authority", "key", "primary_key", "keyboard", "monkey", "token_count", "max_tokens",
     "tokens", "secretary", "cookies_accepted", "user", "url", "passenger", "__proto__", "7"],
)  # fmt: skip
def test_what_is_none(name: str) -> None:
    assert not names_secret(name)


def test_a_document_keeps_its_shape() -> None:
    given = {"a": [{"token": "x", "b": 1}], "password": None, "secret": False, "api_key": {"deep": "x"}, "pwd": 7}
    masked = {"a": [{"token": "…", "b": 1}], "password": None, "secret": False, "api_key": "…", "pwd": "…"}
    assert concealed(given) == masked


@given(st.text("abc", max_size=30), st.frozensets(st.text("abc", min_size=1, max_size=4), max_size=4))
def test_from_the_left_the_longest_is_masked_first(text: str, secrets: frozenset[str]) -> None:
    pattern = "|".join(map(re.escape, sorted(secrets, key=len, reverse=True)))
    assert masked(text, secrets) == (re.sub(pattern, MASK, text) if secrets else text)
