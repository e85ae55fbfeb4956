"""Filter of runs: the same parameters in lists, bulk commands and exports."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request

from rota.api.auth.identity import identity_of
from rota.api.operations.query import Cursor, Instant, Limit
from rota.core.access.roles import Role
from rota.core.runs.run import RunFilter
from rota.core.runs.search import require_no_secret, shown_filter
from rota.core.states import RunState
from rota.errors import Forbidden, Invalid
from rota.values.scope import Scope


class RunQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All conditions must hold. `state` may be repeated: any of them."""

    state: list[RunState] = []
    job: str | None = None
    queue: str | None = None
    key: str | None = None
    tag: str | None = None
    scope: Annotated[str, msgspec.Meta(description="kind/id")] | None = None
    schedule: str | None = None
    worker: Annotated[str, msgspec.Meta(description="An id, or a name, which several workers may share")] | None = None
    parent: Annotated[str, msgspec.Meta(description="The run whose replicas to find")] | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    error: Annotated[str, msgspec.Meta(description="A part of `Type: message`")] | None = None
    fingerprint: Annotated[str, msgspec.Meta(description="Fingerprint of the error")] | None = None
    payload: Annotated[
        dict[str, str | int | float | bool | None],
        msgspec.Meta(description="Values in the payload, by dotted path: `payload.url=https://…`"),
    ] = {}
    retried: bool | None = None

    @property
    def scope_wanted(self) -> Scope | None:
        """Return the scope in the query."""
        return scope_of(self.scope)


def filter_of(request: Request, query: RunQuery, scope: Scope | None) -> RunFilter:
    """Return the filter, limited to what the caller may see: filtering by a hidden value would reveal it."""
    fields = {name: getattr(query, name) for name in RunQuery.__struct_fields__ if name not in ("state", "scope")}
    run_filter = RunFilter(states=tuple(query.state), scope=scope, **fields)
    if identity_of(request).may(Role.ADMIN):
        return run_filter
    require_no_secret(query.payload)
    return shown_filter(run_filter)


def scope_of(text: str | None) -> Scope | None:
    """Parse `kind/id`."""
    if text is None:
        return None
    kind, slash, id = text.partition("/")
    if not (kind and slash and id):
        raise Invalid(f"scope cannot be {text!r:.80}", hint="write kind/id, for example account/42")
    return Scope(kind, id)


class RunListQuery(RunQuery, kw_only=True):
    """All conditions must hold. `cursor` is `next_cursor` of the previous page."""

    limit: Limit = 50
    cursor: Cursor | None = None


def scope_seen(request: Request, scope: Scope | None) -> Scope | None:
    """Return the scope to search, limited to the caller's own."""
    own_scope = identity_of(request).scope
    if own_scope is not None and scope not in (None, own_scope):
        raise Forbidden(f"only runs of {own_scope.kind}/{own_scope.id} are visible here")
    return own_scope or scope
