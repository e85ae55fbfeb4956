"""`/api/v1/runs`: enqueue, list, look at, cancel and retry."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.answers import answer, page
from rota.api.identity import identity_of
from rota.api.orders import order_of, orders_of
from rota.api.problems import problem
from rota.api.requests import Query, client_of, json_body, shaped
from rota.api.routing import declared
from rota.client import Client, Order
from rota.core.access import Role
from rota.core.model import Run, RunFilter
from rota.core.notes import progress_of
from rota.core.scope import Scope
from rota.core.states import RunState
from rota.errors import BadPayload, Forbidden, Invalid, KeyReused, RotaError, UnknownRun, did_you_mean

_FILTERS = (
    *("state", "job", "queue", "key", "tag", "scope", "schedule", "worker"),
    *("created_after", "created_before", "error", "retried"),
)


class CancelBody(msgspec.Struct, forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None


async def enqueue(request: Request) -> Response:
    """One run, or all or none of many."""
    Query(request, ())
    key = request.headers.get("idempotency-key")
    body = await json_body(request)
    client = await client_of(request)
    scope = identity_of(request).scope
    try:
        if isinstance(body, dict) and "runs" in body:
            return await _enqueue_many(client, [_within(scope, order) for order in orders_of(body, key)])
        return await _enqueue_one(client, _within(scope, order_of(body, "$", key)))
    except KeyReused:
        raise KeyReused(key or "") from None


def _within(scope: Scope | None, order: Order) -> Order:
    """Whoever is for one scope only need not name it, and may name no other."""
    if scope is None:
        return order
    if order.options.get("scope", (scope.kind, scope.id)) != (scope.kind, scope.id):
        raise Forbidden(f"only runs of {scope.kind}/{scope.id} may be enqueued with this token")
    return Order(order.job, order.arguments, {**order.options, "scope": (scope.kind, scope.id)})


async def _enqueue_one(client: Client, order: Order) -> Response:
    try:
        enqueued = await client.enqueue(order)
    except BadPayload as error:
        return problem(error, "#/payload")
    return _created(await client.get(enqueued.id), new=enqueued.created)


async def _enqueue_many(client: Client, orders: Sequence[Order]) -> Response:
    try:
        enqueued = await client.enqueue_many(orders)
    except KeyReused:
        raise
    except RotaError as error:
        place = await _place_of(error, client, orders)
        return problem(error, place)
    items = await client.get_many(run.id for run in enqueued)
    return answer({"items": items}, 201)


async def _place_of(error: RotaError, client: Client, orders: Sequence[Order]) -> str:
    """Which of many runs was refused: asked again one by one, because only the first failure costs it."""
    for place, order in enumerate(orders):
        try:
            await client.prepare(order)
        except type(error):
            return f"#/runs/{place}/payload" if isinstance(error, BadPayload) else f"#/runs/{place}"
    return "#"


def _created(run: Run, *, new: bool = True) -> Response:
    return answer(run, 201 if new else 200, {"location": f"/api/v1/runs/{run.id}"})


async def list_runs(request: Request) -> Response:
    query = Query(request, (*_FILTERS, "limit", "cursor"))
    wanted = RunFilter(
        states=tuple(state_of(text) for text in query.all("state")),
        job=query.one("job"),
        queue=query.one("queue"),
        key=query.one("key"),
        tag=query.one("tag"),
        scope=_seen(request, scope_of(query.one("scope"))),
        schedule=query.one("schedule"),
        worker=query.one("worker"),
        created_after=query.instant("created_after"),
        created_before=query.instant("created_before"),
        error=query.one("error"),
        retried=query.flag("retried"),
    )
    limit = query.number("limit", 50)
    before = run_before(query.one("cursor"))
    runs = await (await client_of(request)).list(wanted, limit=limit, before=before)
    return answer(page(runs, cursor_after(runs[-1]) if len(runs) == limit else None))


def _seen(request: Request, asked: Scope | None) -> Scope | None:
    own = identity_of(request).scope
    if own is not None and asked not in (None, own):
        raise Forbidden(f"only runs of {own.kind}/{own.id} may be seen with this token")
    return own or asked


async def _run_of(request: Request, client: Client) -> Run:
    """The one that the address names, as if there were no others than those of the caller's scope."""
    run = await client.get(request.path_params["id"])
    own = identity_of(request).scope
    if own is not None and run.scope != own:
        raise UnknownRun(request.path_params["id"])
    return run


def state_of(text: str) -> RunState:
    try:
        return RunState(text)
    except ValueError:
        raise Invalid(
            f"no run is ever {text!r:.80}", hint=did_you_mean(text[:80], [state.value for state in RunState])
        ) from None


def scope_of(text: str | None) -> Scope | None:
    if text is None:
        return None
    kind, slash, id = text.partition("/")
    if not (kind and slash and id):
        raise Invalid(f"scope cannot be {text!r:.80}", hint="write kind/id, for example account/42")
    return Scope(kind, id)


def cursor_after(run: Run) -> str:
    return base64.urlsafe_b64encode(UUID(run.id).bytes).rstrip(b"=").decode()


def run_before(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        return str(UUID(bytes=base64.b64decode(cursor.encode() + b"==", altchars=b"-_", validate=True)))
    except (ValueError, binascii.Error):
        raise Invalid(f"cursor {cursor!r:.80} is none of ours", hint="take next_cursor of the page before") from None


async def get_run(request: Request) -> Response:
    Query(request, ())
    client = await client_of(request)
    run = await _run_of(request, client)
    steps = await client.steps(run.id)
    said = progress_of(run.progress, steps, run.state) if run.progress or steps else None
    return answer(msgspec.structs.replace(run, progress=said))


async def list_attempts(request: Request) -> Response:
    Query(request, ())
    client = await client_of(request)
    run = await _run_of(request, client)
    return answer(page(await client.attempts(run.id)))


async def cancel(request: Request) -> Response:
    """The run as it stands then: `cancelled`, or `cancelling` while its worker has its grace."""
    Query(request, ())
    body = shaped(await json_body(request, default={}), CancelBody)
    client = await client_of(request)
    run = await _run_of(request, client)
    await client.cancel(run.id, reason=body.reason, actor=identity_of(request).actor)
    return answer(await client.get(run.id))


async def retry(request: Request) -> Response:
    Query(request, ())
    if await json_body(request, default={}) != {}:
        raise Invalid("a retry takes no options", hint="enqueue a new run to change something")
    client = await client_of(request)
    run = await _run_of(request, client)
    enqueued = await client.retry(run.id, actor=identity_of(request).actor)
    return _created(await client.get(enqueued.id))


ROUTES = [
    declared("/runs", GET=(Role.VIEWER, list_runs), POST=(Role.ENQUEUE, enqueue), scoped=True),
    declared("/runs/{id}", GET=(Role.VIEWER, get_run), scoped=True),
    declared("/runs/{id}/attempts", GET=(Role.VIEWER, list_attempts), scoped=True),
    declared("/runs/{id}/cancel", POST=(Role.OPERATOR, cancel), scoped=True),
    declared("/runs/{id}/retry", POST=(Role.OPERATOR, retry), scoped=True),
]
