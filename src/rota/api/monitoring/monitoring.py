"""`/api/v1/overview` and what else people look at: questions over everything, none of which looks through all runs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.docs.examples import OVERVIEW, SERIES, TIMELINE
from rota.api.operations.operation import operation
from rota.api.operations.query import Instant, asked
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
    """How full it is, what came of the last day, what needs attention, and the next fires.

    It may be a moment old. `attention` has the first of each kind, of `attention_count` in all.
    """
    return answer(await (await client_of(request)).monitoring.overview())


class SeriesQuery(msgspec.Struct, rename={"from_at": "from", "to_at": "to"}):
    """`step`: whole minutes, as `15m`; whole hours, if more than two days ago are asked for."""

    from_at: Instant | None = None
    to_at: Instant | None = None
    step: str | None = None


@operation(Role.VIEWER, query=SeriesQuery, answers=Series, gives=SERIES)
async def get_series(request: Request) -> Response:
    """Charts: in steps, runs by how they ended, percentiles of durations and lag, how full the queues were.

    Of the last day in steps of 15 minutes, unless told otherwise; a thousand steps at most.
    """
    query = asked(request, SeriesQuery)
    return answer(worded(await (await client_of(request)).monitoring.series(query.from_at, query.to_at, query.step)))


class TimelineQuery(msgspec.Struct, rename={"from_at": "from", "to_at": "to"}):
    from_at: Instant | None = None
    to_at: Instant | None = None
    by: Literal["schedule", "job", "worker", "queue"] = "schedule"
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ATTEMPTS, description="How many attempts")] = 500


@operation(Role.VIEWER, query=TimelineQuery, answers=Timeline, gives=TIMELINE)
async def get_timeline(request: Request) -> Response:
    """Attempts that went on in a stretch of time, in lanes, and plan times to come up to its end.

    Of the last hour, unless told otherwise; of runs made no earlier than a day before. The newest attempts are told,
    `truncated` says that there are others.
    """
    query = asked(request, TimelineQuery)
    client = await client_of(request)
    return answer(await client.monitoring.timeline(query.from_at, query.to_at, by=query.by, limit=query.limit))


ROUTES = [
    declared("/overview", GET=get_overview),
    declared("/series", GET=get_series),
    declared("/timeline", GET=get_timeline),
]
