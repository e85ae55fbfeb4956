"""`/api/v1/runs`: enqueue, list, get, cancel and retry runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import all_shown, created, discretion, shown, shown_facts
from rota.api.http.problems import problem
from rota.api.operations.cursors import cursor_below, run_before
from rota.api.operations.enqueue_body import EnqueueBody, order_of, orders_of
from rota.api.operations.operation import operation
from rota.api.operations.query import checked_query
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
from rota.verbs.examples import ATTEMPT, EVENT, EXPLANATION, RUN, STEP


class CancelBody(msgspec.Struct, forbid_unknown_fields=True):
    """An optional reason, for the audit log."""

    reason: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None


class RetryBody(msgspec.Struct, forbid_unknown_fields=True):
    """`keep_steps` reuses the results of completed steps; `from_step` reuses only those before that step."""

    keep_steps: bool = False
    from_step: str | None = None


class EnqueuedRuns(msgspec.Struct):
    """`created` says which of them are new; the others existed."""

    items: Sequence[Run]
    created: Sequence[bool]


class RunDetailQuery(msgspec.Struct):
    """`steps` adds the run's steps to `progress`; otherwise that is only what the run itself reported."""

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
async def enqueue_run(request: Request) -> Response:
    """Enqueue a run, or several, all or nothing.

    With an `Idempotency-Key`, the request is safe to repeat for 24 hours: it is answered with the runs created the
    first time. 200 means that the run existed already.
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


@operation(Role.VIEWER, query=RunListQuery, answers=Run, lists=True, gives=RUN)
async def list_runs(request: Request) -> Response:
    """List runs, newest first.

    A filter that matches few of many runs stops searching after a quarter of a second. The page may then be short or
    even empty; as long as there is a `next_cursor`, there may be more.
    """
    query = checked_query(request, RunListQuery)
    run_filter = filter_of(request, query, scope_seen(request, query.scope_wanted))
    runs = await (await client_of(request)).page(run_filter, limit=query.limit, before=run_before(query.cursor))
    return answer(page(all_shown(request, runs.runs), cursor_below(runs.next)))


async def run_of(request: Request, client: Client) -> Run:
    """Return the run in the path."""
    return await client.get(request.path_params["id"])


@operation(Role.VIEWER, query=RunDetailQuery, answers=Run, gives=RUN)
async def get_run(request: Request) -> Response:
    """Get a run, with its steps in `progress`.

    An id may be shortened to its unique beginning or end.
    """
    client = await client_of(request)
    run = await run_of(request, client)
    if not checked_query(request, RunDetailQuery).steps:
        return answer(shown(request, run))
    steps = await client.steps(run.id)
    progress = progress_of(run.progress, steps, run.state) if run.progress or steps else None
    return answer(shown(request, msgspec.structs.replace(run, progress=progress)))


@operation(Role.VIEWER, answers=Attempt, lists=True, gives=ATTEMPT)
async def list_attempts(request: Request) -> Response:
    """List the attempts of a run, oldest first."""
    client = await client_of(request)
    run = await run_of(request, client)
    attempts, discreet = await client.attempts(run.id), discretion(request, run)
    return answer(page(attempts if discreet is None else [discreet.attempt(attempt) for attempt in attempts]))


@operation(Role.VIEWER, answers=Step, lists=True, gives=STEP)
async def list_steps(request: Request) -> Response:
    """List the steps of a run, in order.

    These are the steps that its job declares and those that the run has opened.
    """
    client = await client_of(request)
    run = await run_of(request, client)
    steps, discreet = await client.steps(run.id), discretion(request, run)
    return answer(page(steps if discreet is None else [discreet.step(step) for step in steps]))


@operation(Role.VIEWER, answers=Event, lists=True, gives=EVENT)
async def list_run_events(request: Request) -> Response:
    """List the state changes of a run, oldest first, each with its time, actor and fence."""
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(page(shown_facts(request, run, await client.events(run.id))))


@operation(Role.VIEWER, answers=Explanation, gives=EXPLANATION)
async def explain_run(request: Request) -> Response:
    """Explain why a run is in its current state."""
    client = await client_of(request)
    run = await run_of(request, client)
    return answer(shown_facts(request, run, await client.explain(run.id)))


@operation(Role.OPERATOR, body=CancelBody, body_optional=True, answers=Run, takes={"reason": "a mistake"}, gives=RUN)
async def cancel_run(request: Request) -> Response:
    """Cancel a run.

    The answer is the run's new state: `cancelled`, or `cancelling` while its worker has its grace period.
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
async def retry_run(request: Request) -> Response:
    """Retry a final run as a new run, whose `retry_of` names the old one.

    With an `Idempotency-Key`, a repeated request is answered with the run created the first time (200).
    """
    body = shaped(await json_body(request, default={}), RetryBody)
    client = await client_of(request)
    run = await run_of(request, client)
    options: dict[str, Any] = {"keep_steps": body.keep_steps, "from_step": body.from_step}
    enqueued = await client.retry(run.id, actor=identity_of(request).actor, idempotency_key=key_of(request), **options)
    return created(request, await client.get(enqueued.id), new=enqueued.created)


ROUTES = [
    declared("/runs", GET=list_runs, POST=enqueue_run, scoped=True),
    declared("/runs/{id}", GET=get_run, scoped=True),
    declared("/runs/{id}/attempts", GET=list_attempts, scoped=True),
    declared("/runs/{id}/steps", GET=list_steps, scoped=True),
    declared("/runs/{id}/events", GET=list_run_events, scoped=True),
    declared("/runs/{id}/explain", GET=explain_run, scoped=True),
    declared("/runs/{id}/cancel", POST=cancel_run, scoped=True),
    declared("/runs/{id}/retry", POST=retry_run, scoped=True),
]
