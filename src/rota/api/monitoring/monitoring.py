"""`/api/v1/overview`, `series`, `timeline`: data for dashboards. No query here scans all runs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.docs.examples import OVERVIEW, SERIES, TIMELINE
from rota.api.operations.operation import operation
from rota.api.operations.query import Instant, checked_query
from rota.api.operations.request import client_of
from rota.api.operations.response import answer
from rota.api.operations.routing import declared
from rota.core.access.roles import Role
from rota.core.monitoring.charts import Series
from rota.core.monitoring.overview import Overview
from rota.core.monitoring.timeline import MOST_ATTEMPTS, Timeline
from rota.values.durations import worded


@operation(Role.VIEWER, answers=Overview, gives=OVERVIEW)
async def get_overview(request: Request) -> Response:
    """Get current load, results of the last day, what needs attention, and the next runs.

    It may be a fraction of a second old. `attention` has the first entries of each kind; `attention_count` counts all.
    """
    return answer(await (await client_of(request)).monitoring.overview())


class SeriesQuery(msgspec.Struct, rename={"from_at": "from", "to_at": "to"}):
    """`step` is whole minutes (`15m`), or whole hours if the range begins more than two days ago."""

    from_at: Instant | None = None
    to_at: Instant | None = None
    step: str | None = None


@operation(Role.VIEWER, query=SeriesQuery, answers=Series, gives=SERIES)
async def get_series(request: Request) -> Response:
    """Get charts: finished runs by state, percentiles of durations and lag, and queue depths, in steps.

    By default the last day in steps of 15 minutes; at most a thousand steps.
    """
    query = checked_query(request, SeriesQuery)
    return answer(worded(await (await client_of(request)).monitoring.series(query.from_at, query.to_at, query.step)))


class TimelineQuery(msgspec.Struct, rename={"from_at": "from", "to_at": "to"}):
    """`by` chooses what a lane is."""

    from_at: Instant | None = None
    to_at: Instant | None = None
    by: Literal["schedule", "job", "worker", "queue"] = "schedule"
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ATTEMPTS, description="Maximum number of attempts")] = 500


@operation(Role.VIEWER, query=TimelineQuery, answers=Timeline, gives=TIMELINE)
async def get_timeline(request: Request) -> Response:
    """Get the attempts within a time range, in lanes, and the plan times up to its end.

    By default the last hour. Only runs created up to a day before the range are considered. The newest attempts are
    returned; `truncated` means that there are more.
    """
    query = checked_query(request, TimelineQuery)
    client = await client_of(request)
    return answer(await client.monitoring.timeline(query.from_at, query.to_at, by=query.by, limit=query.limit))


ROUTES = [
    declared("/overview", GET=get_overview),
    declared("/series", GET=get_series),
    declared("/timeline", GET=get_timeline),
]
