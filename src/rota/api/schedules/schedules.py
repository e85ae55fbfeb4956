"""`/api/v1/schedules`: make, change, stop, and look ahead."""

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
from rota.api.docs.examples import FIRE, RUN, SCHEDULE, SCHEDULE_BODY
from rota.api.http.problems import payload_at
from rota.api.http.rejection import BadBody
from rota.api.operations.cursors import cursor_of_name, name_after
from rota.api.operations.operation import operation
from rota.api.operations.query import Instant, OwnerQuery, Page, asked
from rota.api.operations.request import client_of, json_body, key_of, shaped
from rota.api.operations.response import answer, at, etag, page, require_revision
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

RecentCount = Annotated[int, msgspec.Meta(ge=1, le=MOST_RECENT, description="Also the last so many runs of each")]


class RecentQuery(msgspec.Struct):
    recent: RecentCount | None = None


async def recent_of(client: Client, schedules: Sequence[Schedule], limit: int | None) -> dict[str, dict[str, Any]]:
    """By name; nothing, unless they are asked for."""
    if limit is None:
        return {}
    found = await client.schedules.recent([schedule.name for schedule in schedules], limit)
    return {name: msgspec.structs.asdict(one) for name, one in found.items()}


Reason = Annotated[str, msgspec.Meta(max_length=1_000)]
_PAYLOAD = "$.payload"
Document = dict[str, Any]
"""As in `schedules.toml`: name, job, one trigger, and options; checked by the same reader."""


class ScheduleQuery(Page, kw_only=True):
    job: str | None = None
    owner: str | None = None
    text: Annotated[str, msgspec.Meta(max_length=200, description="A part of the name")] | None = None
    state: str | None = None
    recent: RecentCount | None = None


class PauseBody(msgspec.Struct, forbid_unknown_fields=True):
    """`until`: an instant, or how long from now."""

    reason: Reason | None = None
    until: str | None = None


class ResumeBody(msgspec.Struct, forbid_unknown_fields=True):
    catch_up: str = "skip"


class TriggerBody(msgspec.Struct, forbid_unknown_fields=True):
    scope: str | None = None
    force: bool = False


class PreviewQuery(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10
    after: Instant | None = None


class SimulateBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`changes`: another trigger or other options, as a document has them.

    `outages`: from when until when nobody plans; times with a zone, or `+1h` from `start` on.
    """

    span: str = "1d"
    start: Instant | None = None
    duration: str = "1s"
    fail_every: Annotated[int, msgspec.Meta(ge=1)] | None = None
    outages: list[tuple[str, str]] = []
    workers: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    changes: Document = {}


class TriggeredRuns(msgspec.Struct):
    items: list[Run]


def _seen(request: Request, schedule: Schedule, now: datetime) -> dict[str, Any]:
    """Its payload may have secrets, which are for admins."""
    shown = view(schedule, now=now)
    return shown if identity_of(request).may(Role.ADMIN) else {**shown, "definition": concealed(shown["definition"])}


async def _answered(request: Request, client: Client, schedule: Schedule, status: int = 200) -> Response:
    """With its revision, by which a change can be made to depend on nobody having changed it meanwhile."""
    headers = {"etag": etag(schedule.revision)}
    if status == 201:
        headers["location"] = at(f"/api/v1/schedules/{quote(schedule.name, safe='')}")
    return answer(_seen(request, schedule, await client.time()), status, headers)


def _document(value: object, name: str | None = None) -> Document:
    if not isinstance(value, dict):
        raise BadBody("$", "must be an object")
    if name is not None and value.get("name", name) != name:
        raise BadBody("$.name", f"is {value['name']!r:.80}, but the address says {name!r:.80}")
    return {**value, "name": value.get("name", name)}


@operation(Role.VIEWER, query=ScheduleQuery, answers=Document, lists=True, gives=SCHEDULE)
async def list_schedules(request: Request) -> Response:
    """Schedules, by name.

    With `recent`, each also has its last runs, the oldest first, and `p50_duration_ms`, `p95_duration_ms` of those.
    """
    query = asked(request, ScheduleQuery)
    client = await client_of(request)
    after = name_after(query.cursor)
    chosen = {"job": query.job, "owner": query.owner, "text": query.text, "state": query.state}
    found = await client.schedules.list(**chosen, limit=query.limit, after=after)
    now = await client.time()
    following = cursor_of_name(found[-1].name) if len(found) == query.limit else None
    recent = await recent_of(client, found, query.recent)
    return answer(
        page([{**_seen(request, schedule, now), **recent.get(schedule.name, {})} for schedule in found], following)
    )


@operation(
    Role.ADMIN, query=OwnerQuery, body=Document, answers=Document, status=201, takes=SCHEDULE_BODY, gives=SCHEDULE
)
async def create_schedule(request: Request) -> Response:
    """Make a schedule."""
    parsed = parse(_document(await json_body(request)))
    client = await client_of(request)
    owner, actor = asked(request, OwnerQuery).owner, identity_of(request).actor
    with payload_at(_PAYLOAD):
        made = await client.schedules.create(
            parsed.name, parsed.job, parsed.trigger, owner=owner, actor=actor, **parsed.options
        )
    return await _answered(request, client, made, 201)


@operation(Role.VIEWER, query=RecentQuery, answers=Document, gives=SCHEDULE)
async def get_schedule(request: Request) -> Response:
    """One schedule: `rule` in words, and `definition`, the document that would make it."""
    client = await client_of(request)
    found = await client.schedules.get(request.path_params["name"])
    recent = await recent_of(client, [found], asked(request, RecentQuery).recent)
    shown = {**_seen(request, found, await client.time()), **recent.get(found.name, {})}
    return answer(shown, headers={"etag": etag(found.revision)})


@operation(
    Role.ADMIN, body=Document, answers=Document, also=(201,), takes={"job": "crawl", "every": "1h"}, gives=SCHEDULE
)
async def put_schedule(request: Request) -> Response:
    """Make or replace a schedule: what the document does not say is as by default.

    With `If-Match`, only if nobody has changed it since that `ETag`; with `If-None-Match: *`, only if there is none.
    """
    name = request.path_params["name"]
    parsed = parse(_document(await json_body(request), name))
    client, actor = await client_of(request), identity_of(request).actor
    try:
        old = await client.schedules.get(name)
    except UnknownSchedule:
        require_revision(request, None)
        with payload_at(_PAYLOAD):
            made = await client.schedules.create(name, parsed.job, parsed.trigger, actor=actor, **parsed.options)
        return await _answered(request, client, made, 201)
    require_revision(request, old.revision)
    if request.headers.get("if-none-match") == "*":
        raise DuplicateSchedule(name)
    options = {**dict.fromkeys(SCHEDULE_OPTIONS), **parsed.options}
    with payload_at(_PAYLOAD):
        changed = await client.schedules.update(
            name, job=parsed.job, trigger=parsed.trigger, actor=actor, expected=old.definition, **options
        )
    return await _answered(request, client, changed)


@operation(Role.ADMIN, body=Document, answers=Document, takes={"overlap": "allow", "jitter": None}, gives=SCHEDULE)
async def patch_schedule(request: Request) -> Response:
    """Change some of a schedule: `null` goes back to the default.

    With `If-Match`, only if nobody has changed it since that `ETag`.
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
    return await _answered(request, client, changed)


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
    """Let a schedule rest, until it is resumed or `until`."""
    body = shaped(await json_body(request, default={}), PauseBody)
    client = await client_of(request)
    until = _until(body.until)
    actor = identity_of(request).actor
    paused = await client.schedules.pause(request.path_params["name"], reason=body.reason, until=until, actor=actor)
    return await _answered(request, client, paused)


def _until(given: str | None) -> datetime | str | None:
    if given is not None and given[:4].isdigit() and "T" in given:
        try:
            return msgspec.convert(given, Instant)
        except msgspec.ValidationError:
            raise Invalid(f"until cannot be {given!r:.80}", hint="a time with a zone, or a duration") from None
    return given


@operation(
    Role.OPERATOR, body=ResumeBody, body_optional=True, answers=Document, takes={"catch_up": "latest"}, gives=SCHEDULE
)
async def resume_schedule(request: Request) -> Response:
    """Let a schedule go on; what passed meanwhile is skipped, unless `catch_up` is `latest` or `all`."""
    body = shaped(await json_body(request, default={}), ResumeBody)
    client = await client_of(request)
    name, actor = request.path_params["name"], identity_of(request).actor
    return await _answered(request, client, await client.schedules.resume(name, catch_up=body.catch_up, actor=actor))


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
    """Run a schedule now, for each of its scopes or for one; a conflict if its overlap policy forbids it.

    With an `Idempotency-Key`, sent again it is answered with the runs that it made the first time.
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
    """The next plan times, with what daylight saving does to them."""
    query = asked(request, PreviewQuery)
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
    """What a schedule would do, with other policies if so asked; nothing is stored."""
    body = shaped(await json_body(request, default={}), SimulateBody)
    client = await client_of(request)
    name = request.path_params["name"]
    old = await client.schedules.get(name)
    parsed = parse(merged(document_of(name, old.definition), body.changes))
    options = {**dict.fromkeys(SCHEDULE_OPTIONS), **parsed.options}
    what_if = SimulationOptions(
        duration=body.duration, fail_every=body.fail_every, outages=tuple(body.outages), workers=body.workers
    )
    with payload_at("$.changes.payload"):
        found = await client.schedules.simulate(
            name, body.span, what_if, start=body.start, trigger=parsed.trigger, **options
        )
    definition = await client.schedules.define(*parsed)
    return answer({"rule": describe(definition.rule, name), **worded(found)})


ROUTES = [
    declared("/schedules", GET=list_schedules, POST=create_schedule),
    declared("/schedules/{name}", GET=get_schedule, PUT=put_schedule, PATCH=patch_schedule, DELETE=delete_schedule),
    declared("/schedules/{name}/pause", POST=pause_schedule),
    declared("/schedules/{name}/resume", POST=resume_schedule),
    declared("/schedules/{name}/trigger", POST=trigger_schedule),
    declared("/schedules/{name}/simulate", POST=simulate_schedule),
    declared("/schedules/{name}/preview", GET=preview_schedule),
]
