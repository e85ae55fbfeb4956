"""Scope of a run, (kind, id): the tenant or resource that it is for; `global/global` without one."""

from __future__ import annotations

import msgspec


class Scope(msgspec.Struct, frozen=True, gc=False):
    """Tenant or object that a run is for."""

    kind: str = "global"
    """Kind of the scope, such as `account`."""
    id: str = "global"
    """Id of the scope."""


GLOBAL = Scope()


def scope_text(scope: Scope) -> str:
    """Write a scope as `kind/id`. A slash in the kind is written `%2F`: `scope_parts` splits at the first one."""
    return f"{kind_text(scope.kind)}/{scope.id}"


def kind_text(kind: str) -> str:
    """Write the kind of a scope as `scope_text` does."""
    return kind.replace("%", "%25").replace("/", "%2F")


def scope_parts(text: str) -> tuple[str, str | None]:
    """Read `kind/id`, or `kind` alone: the id is None then."""
    kind, slash, id = text.partition("/")
    kind = kind.replace("%2F", "/").replace("%2f", "/").replace("%25", "%")
    return kind, id if slash else None
