"""Tokens from the command line."""

import asyncio
from pathlib import Path

import pytest

from rota.client.access.tokens import TokensClient
from rota.store import Store, open_database
from tests.support.processes.command_line import answer, rota


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", sqlite_url)
    asyncio.run(checked(sqlite_url, ""))
    return sqlite_url


async def checked(url: str, secret: str) -> str | None:
    """Return the role of a token, if it is valid."""
    store = Store(open_database(url))
    await store.migrate()
    token = await TokensClient(store).check(secret)
    await store.close()
    return None if token is None else token.role.value


def test_a_token_is_made_shown_once_and_revoked(url: str) -> None:
    made = rota("token", "create", "ci", "--role", "enqueue", "--scope", "tenant/42")
    secret = made.stdout.strip()
    assert asyncio.run(checked(url, secret)) == "enqueue"
    (listed,) = answer("token", "ls")["items"]
    assert (listed["name"], listed["role"], listed["scope"]) == ("ci", "enqueue", {"kind": "tenant", "id": "42"})
    assert secret not in rota("token", "ls").stdout
    assert "valid" in rota("token", "ls").stdout
    assert answer("token", "revoke", "ci")["revoked_by"].startswith("cli")
    assert asyncio.run(checked(url, secret)) is None
    assert "revoked" in rota("token", "ls").stdout
