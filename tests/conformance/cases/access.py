"""Cases of tokens."""

from __future__ import annotations

from datetime import timedelta

from rota.core.access.roles import Role
from rota.values.scope import Scope
from tests.conformance.case import Case, Reading, Refusal, refusals
from tests.conformance.world import World

_LIST: Reading = ("tokens.list", {})


async def tokens(world: World) -> None:
    """Create three tokens, of which one is revoked."""
    for name, scope in (("ci", None), ("shop", ("tenant", "42")), ("old", None)):
        world.note(name, (await world.client.tokens.create(name, "enqueue", scope=scope, actor="ann")).token.id)
    await world.client.tokens.revoke("old", actor="ann")


def _created(what: str, named: dict[str, object], **contains: object) -> Case:
    arguments = {"role": "viewer", **named}
    facts = {"name": "ci", "secret": "<secret>", "created_by": "<actor>", "revoked_at": None, **contains}
    return Case("tokens.create", what, ("ci",), arguments, contains=facts, reads=_LIST)


_SCOPE = {"kind": "tenant", "id": "4/2"}
CASES = [
    _created("for 90 days", {}, role="viewer", scope=None, expires_at="<time>"),
    _created("for ever", {"expires": None}, expires_at=None),
    _created("for a time as text", {"expires": "30d"}, expires_at="<time>"),
    _created("for a time as a timedelta", {"expires": timedelta(days=30)}, expires_at="<time>"),
    _created("with a role that is a member", {"role": Role.WORKER}, role="worker"),
    _created("with a scope", {"scope": Scope("tenant", "4/2")}, scope=_SCOPE),
    _created("with a scope as a pair", {"scope": ("tenant", "4/2")}, scope=_SCOPE),
    *refusals(
        "tokens.create",
        ("for no time", ("ci", "viewer"), {"expires": "0s"}, Refusal("invalid", "expires", "expires=None")),
        ("for a wrong time", ("ci", "viewer"), {"expires": "soon"}, Refusal("bad-duration", "expires", "90s")),
        ("with an unknown role", ("ci", "viewr"), {}, Refusal("invalid", "viewr", "'viewer'")),
        ("with an impossible name", ("a\tb", "viewer"), {}, Refusal("invalid", "token name", None)),
        ("with half a scope", ("ci", "viewer"), {"scope": ("tenant", "")}, Refusal("invalid", "scope id", None)),
        ("of a name that is taken", ("shop", "viewer"), {}, Refusal("conflict", "'shop' already exists", "revoke it")),
        given=(tokens,),
        reads=_LIST,
    ),
    Case("tokens.list", "none", contains=[]),
    Case(
        "tokens.list",
        "oldest first",
        given=(tokens,),
        contains=[
            {"id": "<ci>", "revoked_at": None, "created_by": "ann", "scope": None},
            {"id": "<shop>", "scope": {"kind": "tenant", "id": "42"}},
            {"id": "<old>", "revoked_at": "<time>", "revoked_by": "ann"},
        ],
    ),
    Case(
        "tokens.revoke",
        "by name",
        ("ci",),
        given=(tokens,),
        contains={"id": "<ci>", "revoked_at": "<time>", "revoked_by": "<actor>"},
        reads=_LIST,
    ),
    Case("tokens.revoke", "by id", ("<shop>",), given=(tokens,), contains={"name": "shop"}, reads=_LIST),
    Case("tokens.revoke", "a second time", ("old",), given=(tokens,), contains={"revoked_by": "ann"}, reads=_LIST),
    *refusals(
        "tokens.revoke",
        ("an unknown one", ("shp",), {}, Refusal("unknown-token", "shp", "'shop'")),
        given=(tokens,),
        reads=_LIST,
    ),
]
