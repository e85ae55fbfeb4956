"""Tokens: only their digest is stored; they expire, are revoked, and are noted."""

from datetime import timedelta

import pytest

from rota.client.access.tokens import TokensClient
from rota.core.access.roles import Role
from rota.errors import Conflict, Invalid, UnknownToken
from rota.store import Store
from tests.support.clock import ManualClock


@pytest.fixture
def tokens(store: Store) -> TokensClient:
    return TokensClient(store)


async def test_a_token_is_good_until_it_expires(tokens: TokensClient, clock: ManualClock) -> None:
    issued = await tokens.create("ci", "viewer", expires="1h")
    clock.advance(timedelta(minutes=59))
    assert (await tokens.check(issued.secret)) is not None
    clock.advance(timedelta(minutes=1))
    assert (await tokens.check(issued.secret)) is None


async def test_one_without_an_end_stays_good(tokens: TokensClient, clock: ManualClock) -> None:
    issued = await tokens.create("ci", "viewer", expires=None)
    clock.advance(timedelta(days=10_000))
    assert (await tokens.check(issued.secret)) is not None


async def test_what_is_stored_does_not_sign_anybody_in(tokens: TokensClient, store: Store) -> None:
    issued = await tokens.create("ci", Role.ADMIN)

    async def everything(tx):  # type: ignore[no-untyped-def]
        return [str(value) for row in await tx.fetch_sql("select * from rota_token") for value in row]

    stored = await store.database.read(everything)
    secret = issued.secret.rpartition("_")[2]
    assert not any(secret in value for value in stored)
    for value in stored:
        assert await tokens.check(f"rota_{issued.token.id}_{value}") is None


async def test_a_revoked_one_is_none_and_its_sessions_end(tokens: TokensClient) -> None:
    issued = await tokens.create("ci", "operator")
    session = await tokens.open_session(issued.token)
    assert await tokens.check_session(session) is not None
    revoked = await tokens.revoke("ci", actor="ada")
    assert (revoked.revoked_by, await tokens.check(issued.secret)) == ("ada", None)
    assert await tokens.check_session(session) is None
    assert await tokens.revoke(issued.token.id, actor="bob") == revoked


async def test_a_session_ends_by_itself(tokens: TokensClient, clock: ManualClock) -> None:
    session = await tokens.open_session((await tokens.create("ci", "viewer", expires=None)).token)
    clock.advance(timedelta(hours=12))
    assert await tokens.check_session(session) is None


async def test_a_session_ends_with_its_token(tokens: TokensClient, clock: ManualClock) -> None:
    session = await tokens.open_session((await tokens.create("ci", "viewer", expires="1h")).token)
    clock.advance(timedelta(hours=2))
    assert await tokens.check_session(session) is None


async def test_a_name_is_free_again_once_it_is_revoked(tokens: TokensClient) -> None:
    await tokens.create("ci", "viewer")
    with pytest.raises(Conflict, match="token 'ci' already exists"):
        await tokens.create("ci", "viewer")
    await tokens.revoke("ci")
    again = await tokens.create("ci", "viewer")
    assert [token.id for token in await tokens.list() if token.revoked_at is None] == [again.token.id]


async def test_when_it_was_used_is_written_once_a_minute(tokens: TokensClient, clock: ManualClock) -> None:
    issued = await tokens.create("ci", "viewer")
    await tokens.check(issued.secret)
    (first,) = await tokens.list()
    clock.advance(timedelta(seconds=30))
    await tokens.check(issued.secret)
    assert (await tokens.list())[0].used_at == first.used_at
    clock.advance(timedelta(seconds=31))
    await tokens.check(issued.secret)
    used_at = (await tokens.list())[0].used_at
    assert first.used_at is not None
    assert used_at is not None
    assert used_at > first.used_at


async def test_what_was_done_to_tokens_is_in_the_audit(tokens: TokensClient, store: Store) -> None:
    issued = await tokens.create("ci", "viewer", actor="ada")
    session = await tokens.open_session(issued.token)
    for _ in range(2):  # the second finds nothing to end
        await tokens.close_session(session)
    await tokens.revoke("ci", actor="bob")
    told = [(event.type, event.actor) for event in await store.events.audit({"kind": "token"}, 10, None)]
    signed = [("signed_out", "token:ci"), ("signed_in", "token:ci")]
    assert told == [("revoked", "bob"), *signed, ("created", "ada")]
    assert not any(issued.secret in str(event) for event in await store.events.audit({"kind": "token"}, 10, None))


async def test_bad_wishes(tokens: TokensClient) -> None:
    with pytest.raises(Invalid, match="no role is called 'amdin'"):
        await tokens.create("ci", "amdin")
    with pytest.raises(Invalid, match="expires must be positive"):
        await tokens.create("ci", "admin", expires="0s")
    with pytest.raises(Invalid):
        await tokens.create("", "admin")
    with pytest.raises(UnknownToken):
        await tokens.revoke("nobody")
    assert await tokens.list() == []
