"""Filter of runs: the fields of `RunFilter`, as they stand in queries and in bodies of bulk commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request

from rota.api.auth.redaction import searchable
from rota.core.runs.run import RunFilter
from rota.verbs.parameters import given
from rota.verbs.spread import gathered, shape_of

if TYPE_CHECKING:
    RunQuery = msgspec.Struct
else:
    RunQuery = shape_of(RunFilter, "RunQuery")


def filter_of(request: Request, query: RunQuery) -> RunFilter:
    """Return the filter in a query or body, limited to what the caller may see."""
    return searchable(request, gathered(RunFilter, given(query)))
