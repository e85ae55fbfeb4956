"""Filter of runs: the fields of `RunFilter`, as they stand in queries and in bodies of bulk commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import searchable
from rota.api.operations.query import Cursor, Limit
from rota.core.runs.run import RunFilter
from rota.errors import Forbidden
from rota.values.scope import Scope, scope_text
from rota.verbs.parameters import given
from rota.verbs.spread import gathered, shape_of
from rota.verbs.wire import scope_in

if TYPE_CHECKING:
    RunQuery = msgspec.Struct
else:
    RunQuery = shape_of(RunFilter, "RunQuery")


class RunListQuery(RunQuery, kw_only=True):
    """All conditions must hold. `cursor` is `next_cursor` of the previous page."""

    limit: Limit = 50
    cursor: Cursor | None = None


def filter_of(request: Request, query: RunQuery) -> RunFilter:
    """Return the filter in a query or body, limited to what the caller may see."""
    return searchable(request, gathered(RunFilter, given(query)))


def scope_of(text: str | None) -> Scope | None:
    """Parse `kind/id`."""
    return None if text is None else scope_in(text)


def scope_seen(request: Request, scope: Scope | None) -> Scope | None:
    """Return the scope to search, limited to the caller's own."""
    own_scope = identity_of(request).scope
    if own_scope is not None and scope not in (None, own_scope):
        raise Forbidden(f"only runs of {scope_text(own_scope)} are visible here")
    return own_scope or scope
