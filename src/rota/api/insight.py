"""`/api/v1/overview` and what else people look at: questions over everything, none of which looks through all runs."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.answers import answer, worded
from rota.api.insight_examples import OVERVIEW, SERIES
from rota.api.operations import operation
from rota.api.queries import Instant, asked
from rota.api.requests import client_of
from rota.api.routing import declared
from rota.core.access import Role
from rota.core.overview import Overview
from rota.core.series import Series


@operation(Role.VIEWER, answers=Overview, gives=OVERVIEW)
async def get_overview(request: Request) -> Response:
    """How full it is, what came of the last day, what needs attention, and the next fires.

    It may be a second and a half old. `attention` has the first of each kind, of `attention_count` in all.
    """
    return answer(await (await client_of(request)).insight.overview())


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
    return answer(worded(await (await client_of(request)).insight.series(query.from_at, query.to_at, query.step)))


ROUTES = [
    declared("/overview", GET=get_overview),
    declared("/series", GET=get_series),
]
