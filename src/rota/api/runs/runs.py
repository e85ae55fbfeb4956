"""`/api/v1/runs`: enqueue runs, and the verbs about them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.enqueue_rate import EnqueueRate
from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import all_shown, created
from rota.api.http.problems import problem
from rota.api.operations.enqueue_body import EnqueueBody, order_of, orders_of
from rota.api.operations.operation import operation
from rota.api.operations.request import client_of, json_body, key_of
from rota.api.operations.response import answer
from rota.api.operations.routing import declared, joined
from rota.api.operations.verb_operation import routes_of
from rota.api.runs.logs import list_logs
from rota.client.client import Client, Order
from rota.client.own_verbs import OwnVerbs
from rota.core.access.roles import Role
from rota.core.runs.run import Run
from rota.errors import BadPayload, KeyReused, RotaError
from rota.verbs.examples import RUN


class EnqueuedRuns(msgspec.Struct):
    """`created` says which of them are new; the others existed."""

    items: Sequence[Run]
    created: Sequence[bool]


@operation(
    Role.ENQUEUE,
    body=EnqueueBody,
    answers=Run | EnqueuedRuns,
    keyed=True,
    status=201,
    also=(200,),
    takes={"job": "hello", "payload": {"name": "Ada"}, "delay": "10s"},
    gives=RUN,
)
async def enqueue_run(request: Request) -> Response:
    """Enqueue a run, or several, all or nothing.

    With an `Idempotency-Key`, the request is safe to repeat for 24 hours: it is answered with the runs created the
    first time. 200 means that the run existed already.
    """
    key = key_of(request)
    body = await json_body(request)
    client = await client_of(request)
    try:
        many = isinstance(body, dict) and "runs" in body
        orders = orders_of(body, key) if many else [order_of(body, "$", key)]
        rate: EnqueueRate = request.app.state.enqueue_rate
        rate.take(identity_of(request), len(orders))
        return await (_enqueue_many(request, client, orders) if many else _enqueue_one(request, client, orders[0]))
    except KeyReused:
        raise KeyReused(key or "") from None


async def _enqueue_one(request: Request, client: Client, order: Order) -> Response:
    try:
        ((run, new),) = await client.enqueue_shown([order])
    except BadPayload as error:
        return problem(error, "#/payload")
    return created(request, run, new=new)


async def _enqueue_many(request: Request, client: Client, orders: Sequence[Order]) -> Response:
    try:
        runs = await client.enqueue_shown(orders)
    except KeyReused:
        raise
    except RotaError as error:
        place = await _place_of(error, client, orders)
        return problem(error, place)
    return answer(EnqueuedRuns(all_shown(request, (run for run, _ in runs)), [new for _, new in runs]), 201)


async def _place_of(error: RotaError, client: Client, orders: Sequence[Order]) -> str:
    """Return which of many runs was refused, by preparing each again. Only failures pay for this."""
    for place, order in enumerate(orders):
        try:
            await client.prepare(order)
        except type(error):
            return f"#/runs/{place}/payload" if isinstance(error, BadPayload) else f"#/runs/{place}"
    return "#"


ROUTES = joined([declared("/runs", POST=enqueue_run, scoped=True), *routes_of(OwnVerbs, below="/runs", logs=list_logs)])
