"""`/api/v1/runs`: enqueue, list, look at, cancel and retry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import all_shown, created, discretion, said, shown
from rota.api.docs.examples import ATTEMPT, EVENT, EXPLANATION, RUN, STEP
from rota.api.http.problems import problem
from rota.api.operations.cursors import cursor_below, run_before
from rota.api.operations.enqueue_body import EnqueueBody, order_of, orders_of
from rota.api.operations.operation import operation
from rota.api.operations.query import asked
from rota.api.operations.request import client_of, json_body, key_of, shaped
from rota.api.operations.response import answer, page
from rota.api.operations.routing import declared
from rota.api.operations.run_filter import RunListQuery, filter_of, scope_seen
from rota.client.client import Client, Order
from rota.core.access.roles import Role
from rota.core.ledger.audit import Event
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.progress.notes import progress_of
from rota.core.progress.steps import Step
from rota.core.runs.run import Attempt, Run
from rota.errors import BadPayload, KeyReused, RotaError


class CancelBody(msgspec.Struct, forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None


class RetryBody(msgspec.Struct, forbid_unknown_fields=True):
    """What its steps did is kept if so asked; with `from_step`, only what was done before that one."""

    keep_steps: bool = False
    from_step: str | None = None


class EnqueuedRuns(msgspec.Struct):
    """`created`: which of them are new; the others were there already."""

    items: Sequence[Run]
    created: Sequence[bool]


class RunDetailQuery(msgspec.Struct):
    """Without `steps`, `progress` is only what the run said itself."""

    steps: bool = True


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
async def enqueue(request: Request) -> Response:
    """Enqueue a run, or all or none of many.

    An `Idempotency-Key` header makes it safe to send the same request again for 24 hours: it is answered with what it
    made the first time. 200: a key led to a run that was there already.
    """
    key = key_of(request)
    body = await json_body(request)
    client = await client_of(request)
    try:
        if isinstance(body, dict) and "runs" in body:
            return await _enqueue_many(request, client, orders_of(body, key))
        return await _enqueue_one(request, client, order_of(body, "$", key))
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
        made = await client.enqueue_shown(orders)
    except KeyReused:
        raise
    except RotaError as error:
        place = await _place_of(error, client, orders)
        return problem(error, place)
    return answer(EnqueuedRuns(all_shown(request, (run for run, _ in made)), [new for _, new in made]), 201)


async def _place_of(error: RotaError, client: Client, orders: Sequence[Order]) -> str:
    """Which of many runs was refused: asked again one by one, because only the first failure costs it."""
    for place, order in enumerate(orders):
        try:
            await client.prepare(order)
        except type(error):
            return f"#/runs/{place}/payload" if isinstance(error, BadPayload) else f"#/runs/{place}"
    return "#"


@operation(Role.VIEWER, query=RunListQuery, answers=Run, lists=True, gives=RUN)
async def list_runs(request: Request) -> Response:
    """Runs, the newest first.

    Where many must be looked at to find few, a page is short after a quarter of a second, or empty: as long as there is
    a `next_cursor`, there may be more.
    """
    query = asked(request, RunListQuery)
    wanted = filter_of(request, query, scope_seen(request, query.scope_wanted))
    found = await (await client_of(request)).page(wanted, limit=query.limit, before=run_before(query.cursor))
    return answer(page(all_shown(request, found.runs), cursor_below(found.next)))


async def run_of(request: Request, client: Client) -> Run:
    """The one that the address names."""
    return await client.get(request.path_params["id"])


@operation(Role.VIEWER, query=RunDetailQuery, answers=Run, gives=RUN)
async def get_run(request: Request) -> Response:
    """One run, with its steps in `progress`.

    An id may be shortened to its beginning or its end while it names one run only.
    """
    client = await client_of(request)
    run = await run_of(request, client)
    if not asked(request, RunDetailQuery).steps:
        return answer(shown(request, run))
    steps = await client.steps(run.id)
    progress = progress_of(run.progress, steps, run.state) if run.progress or steps else None
    return answer(shown(request, msgspec.structs.replace(run, progress=progress)))


@operation(Role.VIEWER, answers=Attempt, lists=True, gives=ATTEMPT)
async def list_attempts(request: Request) -> Response:
    """The attempts of a run, the oldest first."""
    client = await client_of(request)
    run = await run_of(request, client)
    attempts, discreet = await client.attempts(run.id), discretion(request, run)
    return answer(page(attempts if discreet is None else [discreet.attempt(one) for one in attempts]))


@operation(Role.VIEWER, answers=Step, lists=True, gives=STEP)
async def list_steps(request: Request) -> Response:
    """The steps of a run, in order: those that its job declares, and those that it has opened."""
    client = await client_of(request)
    run = await run_of(request, client)
    steps, discreet = await client.steps(run.id), discretion(request, run)
    return answer(page(steps if discreet is None else [discreet.step(one) for one in steps]))


@operation(Role.VIEWER, answers=Event, lists=True, gives=EVENT)
async def list_events(request: Request) -> Response:
    """Every change of a run's state, the oldest first: when, by whom, under which fence."""
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(page(said(request, run, await client.events(run.id))))


@operation(Role.VIEWER, answers=Explanation, gives=EXPLANATION)
async def explain_run(request: Request) -> Response:
    """Why a run is in the state that it is in."""
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(said(request, run, await client.explain(run.id)))


@operation(Role.OPERATOR, body=CancelBody, body_optional=True, answers=Run, takes={"reason": "a mistake"}, gives=RUN)
async def cancel(request: Request) -> Response:
    """Cancel a run.

    The answer is the run as it stands then: `cancelled`, or `cancelling` while its worker has its grace.
    """
    body = shaped(await json_body(request, default={}), CancelBody)
    client = await client_of(request)
    run = await run_of(request, client)
    await client.cancel(run.id, reason=body.reason, actor=identity_of(request).actor)
    return answer(shown(request, await client.get(run.id)))


@operation(
    Role.OPERATOR,
    body=RetryBody,
    body_optional=True,
    answers=Run,
    status=201,
    also=(200,),
    keyed=True,
    takes={"keep_steps": True},
    gives=RUN,
)
async def retry(request: Request) -> Response:
    """Do the work of a run that has ended again, as a new run whose `retry_of` names the old one.

    With an `Idempotency-Key`, sent again it is answered with the run that it made the first time (200).
    """
    body = shaped(await json_body(request, default={}), RetryBody)
    client = await client_of(request)
    run = await run_of(request, client)
    options: dict[str, Any] = {"keep_steps": body.keep_steps, "from_step": body.from_step}
    enqueued = await client.retry(run.id, actor=identity_of(request).actor, idempotency_key=key_of(request), **options)
    return created(request, await client.get(enqueued.id), new=enqueued.created)


ROUTES = [
    declared("/runs", GET=list_runs, POST=enqueue, scoped=True),
    declared("/runs/{id}", GET=get_run, scoped=True),
    declared("/runs/{id}/attempts", GET=list_attempts, scoped=True),
    declared("/runs/{id}/steps", GET=list_steps, scoped=True),
    declared("/runs/{id}/events", GET=list_events, scoped=True),
    declared("/runs/{id}/explain", GET=explain_run, scoped=True),
    declared("/runs/{id}/cancel", POST=cancel, scoped=True),
    declared("/runs/{id}/retry", POST=retry, scoped=True),
]
