"""Redact runs in responses: secrets in payloads are for admins only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rota.api.auth.identity import identity_of
from rota.api.operations.request import ASKS
from rota.api.operations.response import answer, at
from rota.core.access.roles import Identity, Role
from rota.core.alerts.notifications import NotificationView
from rota.core.jobs.http import HttpRequest
from rota.core.jobs.secrets import without_headers, without_path
from rota.core.ledger.audit import Event
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.runs.dependencies import RelatedRun, unnamed
from rota.core.runs.redaction import Discreet
from rota.core.runs.run import Run, RunFilter
from rota.core.runs.search import require_no_secret, shown_filter
from rota.core.schedules.diff import FieldChange, concealed_change
from rota.core.schedules.schedule import Schedule
from rota.core.schedules.view import concealed_schedule


def discretion(request: Request, run: Run) -> Discreet | None:
    """Return the redaction for this caller, or None if the caller may see everything (always without `auth`)."""
    return None if identity_of(request).may(Role.ADMIN) else Discreet(run)


def shown(request: Request, run: Run) -> Run:
    """Return the run as the caller may see it."""
    if run.reason and identity_of(request).scope is not None:
        run = msgspec.structs.replace(run, reason=unnamed(run.reason))
    discreet = discretion(request, run)
    return run if discreet is None else discreet.run()


def told(request: Request, discreet: Discreet | None, value: Any) -> Any:
    """Return something about a run, such as an attempt or an event, as the caller may see it."""
    if identity_of(request).scope is not None and isinstance(value, Event | Explanation):
        value = _unnamed(msgspec.to_builtins(value))
    return value if discreet is None else discreet.told(value)


def told_of_related(discreet: Mapping[str, Discreet], related: RelatedRun) -> RelatedRun:
    """Return a related run as the caller may see it. Of one that is gone, nobody knows the secrets."""
    own = discreet.get(related.id)
    return msgspec.structs.replace(related, result=None if own is None else own.value(related.result))


def visible(request: Request, value: Any) -> Any:
    """Return a value as the caller may see it: runs and schedules are redacted, wherever they are in it. Other values
    have no secrets."""
    # A route for anyone shows nothing of anybody.
    if ASKS not in request.scope or _sees_everything(identity := identity_of(request)):
        return value
    match value:
        case Run():
            return shown(request, value)
        case Schedule() if not identity.may(Role.ADMIN):
            return concealed_schedule(value)
        case FieldChange() if not identity.may(Role.ADMIN):
            return concealed_change(value)
        case HttpRequest() | NotificationView():
            return value if identity.may(Role.OPERATOR) else _without_way(value)
        case msgspec.Struct():
            parts = {name: (part, visible(request, part)) for name, part in _parts(value)}
            hidden = {name: after for name, (before, after) in parts.items() if after is not before}
            return msgspec.structs.replace(value, **hidden) if hidden else value
        case Mapping():
            return {name: visible(request, item) for name, item in value.items()}
        case list() | tuple():
            return [visible(request, item) for item in value]
        case _:
            return value


def _sees_everything(identity: Identity) -> bool:
    return identity.may(Role.ADMIN) and identity.scope is None


def _without_way(value: HttpRequest | NotificationView) -> HttpRequest | NotificationView:
    """Return it without what lets others send the same: for whoever only looks on."""
    if isinstance(value, HttpRequest):
        return without_headers(value)
    return msgspec.structs.replace(value, to=without_path(value.to))


def _parts(value: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Yield the fields that may hold runs or schedules."""
    for name in value.__struct_fields__:
        part = getattr(value, name)
        if isinstance(part, msgspec.Struct | Mapping | list | tuple):
            yield name, part


def searchable(request: Request, run_filter: RunFilter) -> RunFilter:
    """Return the filter, limited to what the caller may see: filtering by a hidden value would reveal it."""
    if identity_of(request).may(Role.ADMIN):
        return run_filter
    require_no_secret(run_filter.payload)
    return shown_filter(run_filter)


def all_shown(request: Request, runs: Iterable[Run]) -> list[Run]:
    """Return the runs as the caller may see them."""
    identity = identity_of(request)
    if identity.may(Role.ADMIN) and identity.scope is None:
        return list(runs)
    return [shown(request, run) for run in runs]


def _unnamed(facts: Any) -> Any:
    """Remove ids of runs of other scopes. A run may depend on one of another scope if someone who sees both links
    them."""
    match facts:
        case str():
            return unnamed(facts)
        case dict():
            return {name: _unnamed(value) for name, value in facts.items()}
        case list() | tuple():
            return [_unnamed(value) for value in facts]
        case _:
            return facts


def created(request: Request, run: Run, *, new: bool = True) -> Response:
    """Build the response for a run that was enqueued: 201 if it is new, otherwise 200."""
    return answer(shown(request, run), 201 if new else 200, {"location": at(f"/api/v1/runs/{run.id}")})
