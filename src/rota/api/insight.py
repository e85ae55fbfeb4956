"""`/api/v1/overview` and what else people look at: questions over everything, none of which looks through all runs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rota.api.answers import answer
from rota.api.insight_examples import OVERVIEW
from rota.api.operations import operation
from rota.api.requests import client_of
from rota.api.routing import declared
from rota.core.access import Role
from rota.core.overview import Overview


@operation(Role.VIEWER, answers=Overview, gives=OVERVIEW)
async def get_overview(request: Request) -> Response:
    """How full it is, what came of the last day, what needs attention, and the next fires.

    It may be a second and a half old. `attention` has the first of each kind, of `attention_count` in all.
    """
    return answer(await (await client_of(request)).insight.overview())


ROUTES = [
    declared("/overview", GET=get_overview),
]
