"""`/api/v1/schedules`: create, change, control and preview schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.auth.redaction import all_shown
from rota.api.http.problems import payload_at
from rota.api.http.rejection import BadBody
from rota.api.operations.cursors import cursor_of_name, name_after
from rota.api.operations.operation import operation
from rota.api.operations.query import Instant, OwnerQuery, Page, checked_query
from rota.api.operations.request import client_of, json_body, key_of, shaped
from rota.api.operations.response import answer, at, page, require_revision
from rota.api.operations.routing import declared
from rota.api.operations.run_filter import scope_of
from rota.client.client import Client
from rota.core.access.roles import Role
from rota.core.calendar.describe import describe
from rota.core.monitoring.recent_runs import MOST_RECENT
from rota.core.planning.simulation_report import SimulationOptions, SimulationReport
from rota.core.runs.redaction import concealed
from rota.core.runs.run import Run
from rota.core.schedules.documents import document_of, merged, parse
from rota.core.schedules.preview import Fire
from rota.core.schedules.schedule import SCHEDULE_OPTIONS, Schedule
from rota.core.schedules.view import view
from rota.errors import DuplicateSchedule, Invalid, UnknownSchedule
from rota.values.durations import worded
from rota.verbs.examples import FIRE, RUN, SCHEDULE, SCHEDULE_BODY
from rota.verbs.revisions import etag

RecentCount = Annotated[int, msgspec.Meta(ge=1, le=MOST_RECENT, description="Number of recent runs to add to each")]


class RecentQuery(msgspec.Struct):
    """`recent` adds the schedule's last runs."""

    recent: RecentCount | None = None


async def recent_of(client: Client, schedules: Sequence[Schedule], limit: int | None) -> dict[str, dict[str, Any]]:
    """Return recent runs by name of schedule; nothing if `limit` is None."""
    if limit is None:
        return {}
    recent = await client.schedules.recent([schedule.name for schedule in schedules], limit)
    return {name: msgspec.structs.asdict(runs) for name, runs in recent.items()}


Reason = Annotated[str, msgspec.Meta(max_length=1_000)]
_PAYLOAD = "$.payload"
Document = dict[str, Any]
"""A schedule as in `schedules.toml`: name, job, one trigger, and options; checked by the same parser."""


class ScheduleQuery(Page, kw_only=True):
    """All conditions must hold. `cursor` is `next_cursor` of the previous page."""

    job: str | None = None
    owner: str | None = None
    text: Annotated[str, msgspec.Meta(max_length=200, description="Part of the name")] | None = None
    state: str | None = None
    recent: RecentCount | None = None


class PauseBody(msgspec.Struct, forbid_unknown_fields=True):
    """`until` is an instant, or a duration from now."""

    reason: Reason | None = None
    until: str | None = None


class ResumeBody(msgspec.Struct, forbid_unknown_fields=True):
    """`catch_up` says which plan times of the pause still run: none (`skip`), the `latest`, or `all`."""

    catch_up: str = "skip"


class TriggerBody(msgspec.Struct, forbid_unknown_fields=True):
    """`scope` (`kind/id`) limits it to one scope. `force` ignores the overlap policy."""

    scope: str | None = None
    force: bool = False


class PreviewQuery(msgspec.Struct):
    """The next `n` plan times after `after` (default: now)."""

    n: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10
    after: Instant | None = None


class SimulateBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`changes`: another trigger or other options, as in a document.

    `outages`: periods without a scheduler, each from and to; times with a zone, or relative to `start` (`+1h`).
    """

    span: str = "1d"
    start: Instant | None = None
    duration: str = "1s"
    fail_every: Annotated[int, msgspec.Meta(ge=1)] | None = None
    outages: list[tuple[str, str]] = []
    workers: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    changes: Document = {}


class TriggeredRuns(msgspec.Struct):
    """The runs created."""

    items: list[Run]


def _visible(request: Request, schedule: Schedule, now: datetime) -> dict[str, Any]:
    """Return the schedule as the caller may see it: secrets in its payload are for admins."""
    shown = view(schedule, now=now)
    return shown if identity_of(request).may(Role.ADMIN) else {**shown, "definition": concealed(shown["definition"])}


async def _response(request: Request, client: Client, schedule: Schedule, status: int = 200) -> Response:
    """Build the response for a schedule, with its revision as `ETag` for optimistic locking."""
    headers = {"etag": etag(schedule.revision)}
    if status == 201:
        headers["location"] = at(f"/api/v1/schedules/{quote(schedule.name, safe='')}")
    return answer(_visible(request, schedule, await client.time()), status, headers)


def _document(value: object, name: str | None = None) -> Document:
    if not isinstance(value, dict):
        raise BadBody("$", "must be an object")
    if name is not None and value.get("name", name) != name:
        raise BadBody("$.name", f"is {value['name']!r:.80}, but the path says {name!r:.80}")
    return {**value, "name": value.get("name", name)}


@operation(Role.VIEWER, query=ScheduleQuery, answers=Document, lists=True, gives=SCHEDULE)
async def list_schedules(request: Request) -> Response:
    """List schedules by name.

    With `recent`, each also has its last runs, oldest first, and their `p50_duration_ms` and `p95_duration_ms`.
    """
    query = checked_query(request, ScheduleQuery)
    client = await client_of(request)
    after = name_after(query.cursor)
    chosen = {"job": query.job, "owner": query.owner, "text": query.text, "state": query.state}
    schedules = await client.schedules.list(**chosen, limit=query.limit, after=after)
    now = await client.time()
    following = cursor_of_name(schedules[-1].name) if len(schedules) == query.limit else None
    recent = await recent_of(client, schedules, query.recent)
    return answer(
        page(
            [{**_visible(request, schedule, now), **recent.get(schedule.name, {})} for schedule in schedules], following
        )
    )


@operation(
    Role.ADMIN, query=OwnerQuery, body=Document, answers=Document, status=201, takes=SCHEDULE_BODY, gives=SCHEDULE
)
async def create_schedule(request: Request) -> Response:
    """Create a schedule."""
    parsed = parse(_document(await json_body(request)))
    client = await client_of(request)
    owner, actor = checked_query(request, OwnerQuery).owner, identity_of(request).actor
    with payload_at(_PAYLOAD):
        schedule = await client.schedules.create(
            parsed.name, parsed.job, parsed.trigger, owner=owner, actor=actor, **parsed.options
        )
    return await _response(request, client, schedule, 201)


@operation(Role.VIEWER, query=RecentQuery, answers=Document, gives=SCHEDULE)
async def get_schedule(request: Request) -> Response:
    """Get a schedule.

    `rule` describes its trigger in words, and `definition` is the document that would create it.
    """
    client = await client_of(request)
    schedule = await client.schedules.get(request.path_params["name"])
    recent = await recent_of(client, [schedule], checked_query(request, RecentQuery).recent)
    shown = {**_visible(request, schedule, await client.time()), **recent.get(schedule.name, {})}
    return answer(shown, headers={"etag": etag(schedule.revision)})


@operation(
    Role.ADMIN, body=Document, answers=Document, also=(201,), takes={"job": "crawl", "every": "1h"}, gives=SCHEDULE
)
async def replace_schedule(request: Request) -> Response:
    """Create or replace a schedule.

    Options that the document does not name have their defaults. With `If-Match`, only if the schedule still has that
    `ETag`; with `If-None-Match: *`, only if there is none.
    """
    name = request.path_params["name"]
    parsed = parse(_document(await json_body(request), name))
    client, actor = await client_of(request), identity_of(request).actor
    try:
        old = await client.schedules.get(name)
    except UnknownSchedule:
        require_revision(request, None)
        with payload_at(_PAYLOAD):
            created = await client.schedules.create(name, parsed.job, parsed.trigger, actor=actor, **parsed.options)
        return await _response(request, client, created, 201)
    require_revision(request, old.revision)
    if request.headers.get("if-none-match") == "*":
        raise DuplicateSchedule(name)
    options = {**dict.fromkeys(SCHEDULE_OPTIONS), **parsed.options}
    with payload_at(_PAYLOAD):
        changed = await client.schedules.update(
            name, job=parsed.job, trigger=parsed.trigger, actor=actor, expected=old.definition, **options
        )
    return await _response(request, client, changed)


@operation(Role.ADMIN, body=Document, answers=Document, takes={"overlap": "allow", "jitter": None}, gives=SCHEDULE)
async def update_schedule(request: Request) -> Response:
    """Update parts of a schedule; `null` resets an option to its default.

    With `If-Match`, only if the schedule still has that `ETag`.
    """
    name = request.path_params["name"]
    changes = _document(await json_body(request), name)
    client = await client_of(request)
    old = await client.schedules.get(name)
    require_revision(request, old.revision)
    parsed = parse(merged(document_of(name, old.definition), changes))
    options = {**dict.fromkeys(SCHEDULE_OPTIONS), **parsed.options}
    actor = identity_of(request).actor
    with payload_at(_PAYLOAD):
        changed = await client.schedules.update(
            name, job=parsed.job, trigger=parsed.trigger, actor=actor, expected=old.definition, **options
        )
    return await _response(request, client, changed)


@operation(Role.ADMIN, status=204)
async def delete_schedule(request: Request) -> Response:
    """Delete a schedule; its runs stay."""
    name = request.path_params["name"]
    client = await client_of(request)
    require_revision(request, (await client.schedules.get(name)).revision)
    await client.schedules.delete(name, actor=identity_of(request).actor)
    return Response(status_code=204)


@operation(
    Role.OPERATOR,
    body=PauseBody,
    body_optional=True,
    answers=Document,
    takes={"reason": "maintenance", "until": "2h"},
    gives=SCHEDULE,
)
async def pause_schedule(request: Request) -> Response:
    """Pause a schedule, until it is resumed or `until`."""
    body = shaped(await json_body(request, default={}), PauseBody)
    client = await client_of(request)
    until = _until(body.until)
    actor = identity_of(request).actor
    paused = await client.schedules.pause(request.path_params["name"], reason=body.reason, until=until, actor=actor)
    return await _response(request, client, paused)


def _until(text: str | None) -> datetime | str | None:
    if text is not None and text[:4].isdigit() and "T" in text:
        try:
            return msgspec.convert(text, Instant)
        except msgspec.ValidationError:
            raise Invalid(f"until cannot be {text!r:.80}", hint="a time with a zone, or a duration") from None
    return text


@operation(
    Role.OPERATOR, body=ResumeBody, body_optional=True, answers=Document, takes={"catch_up": "latest"}, gives=SCHEDULE
)
async def resume_schedule(request: Request) -> Response:
    """Resume a schedule.

    Plan times during the pause are skipped, unless `catch_up` is `latest` or `all`.
    """
    body = shaped(await json_body(request, default={}), ResumeBody)
    client = await client_of(request)
    name, actor = request.path_params["name"], identity_of(request).actor
    return await _response(request, client, await client.schedules.resume(name, catch_up=body.catch_up, actor=actor))


@operation(
    Role.OPERATOR,
    body=TriggerBody,
    body_optional=True,
    answers=TriggeredRuns,
    status=201,
    keyed=True,
    takes={"scope": "tenant/42"},
    gives={"items": [RUN]},
)
async def trigger_schedule(request: Request) -> Response:
    """Run a schedule now, for each of its scopes or for one.

    A conflict if its overlap policy forbids that, unless `force` is set. With an `Idempotency-Key`, a repeated request
    is answered with the runs created the first time.
    """
    body = shaped(await json_body(request, default={}), TriggerBody)
    client = await client_of(request)
    name, actor = request.path_params["name"], identity_of(request).actor
    ids = await client.schedules.trigger(
        name, scope=scope_of(body.scope), force=body.force, actor=actor, idempotency_key=key_of(request)
    )
    return answer({"items": all_shown(request, await client.get_many(ids))}, 201)


@operation(Role.VIEWER, query=PreviewQuery, answers=Fire, lists=True, gives=FIRE)
async def preview_schedule(request: Request) -> Response:
    """List the next plan times, with the effects of daylight saving time."""
    query = checked_query(request, PreviewQuery)
    client = await client_of(request)
    return answer(page(await client.schedules.preview(request.path_params["name"], query.n, after=query.after)))


@operation(
    Role.VIEWER,
    body=SimulateBody,
    body_optional=True,
    answers=SimulationReport,
    takes={"span": "1d", "duration": "20m", "changes": {"overlap": "queue_all"}},
)
async def simulate_schedule(request: Request) -> Response:
    """Simulate a schedule, optionally with other policies; nothing is stored."""
    body = shaped(await json_body(request, default={}), SimulateBody)
    client = await client_of(request)
    name = request.path_params["name"]
    old = await client.schedules.get(name)
    parsed = parse(merged(document_of(name, old.definition), body.changes))
    options = {**dict.fromkeys(SCHEDULE_OPTIONS), **parsed.options}
    assumptions = SimulationOptions(
        duration=body.duration, fail_every=body.fail_every, outages=tuple(body.outages), workers=body.workers
    )
    with payload_at("$.changes.payload"):
        report = await client.schedules.simulate(
            name, body.span, assumptions, start=body.start, trigger=parsed.trigger, **options
        )
    definition = await client.schedules.define(*parsed)
    return answer({"rule": describe(definition.rule, name), **worded(report)})


ROUTES = [
    declared("/schedules", GET=list_schedules, POST=create_schedule),
    declared(
        "/schedules/{name}", GET=get_schedule, PUT=replace_schedule, PATCH=update_schedule, DELETE=delete_schedule
    ),
    declared("/schedules/{name}/pause", POST=pause_schedule),
    declared("/schedules/{name}/resume", POST=resume_schedule),
    declared("/schedules/{name}/trigger", POST=trigger_schedule),
    declared("/schedules/{name}/simulate", POST=simulate_schedule),
    declared("/schedules/{name}/preview", GET=preview_schedule),
]
