"""Forms of schedules in requests and answers: documents, which routes, remote clients and files share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from rota.core.calendar.notation import written_instant
from rota.core.ledger.audit import Event, event_in
from rota.core.planning.simulation_report import SimulationOptions
from rota.core.schedules.document_shape import ScheduleChanges, ScheduleDocument
from rota.core.schedules.documents import KEYS, OTHER_KEYS, changes_of, parse
from rota.core.schedules.preview import DocumentPreview, Fire
from rota.core.schedules.view import ScheduleView, schedule_of, view
from rota.core.schedules.vocabulary import translated
from rota.errors import BadPayload, Invalid, UnknownOption
from rota.values.durations import format_duration, parse_duration
from rota.verbs.wire import Answer, Body, Instant

SCHEDULE = Answer(ScheduleView, view, schedule_of)


_OTHERS = ("name", "job", "trigger")
_CHANGEABLE = tuple(key for key in (*KEYS, *OTHER_KEYS) if key != "name")


def _options(arguments: Mapping[str, Any], *others: str) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in (*_OTHERS, *others)}


def _written_document(arguments: Mapping[str, Any], path: Mapping[str, Any]) -> dict[str, Any]:
    name = path["name"] if "name" in path else arguments["name"]
    changes = changes_of(name, arguments.get("job"), arguments.get("trigger"), _options(arguments))
    return {"name": name, **changes}


def _read_document(document: Mapping[str, Any], path: Mapping[str, Any]) -> dict[str, Any]:
    parsed = parse({**path, **document})
    return {"name": parsed.name, "job": parsed.job, "trigger": parsed.trigger, **parsed.options}


def _read_changes(document: Mapping[str, Any], path: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes as keyword arguments. No other parameter can be named."""
    where = f"schedule {path['name']!r}"
    changes = translated({key: value for key, value in document.items() if key != "name"}, where)
    for key in changes:
        if key not in _CHANGEABLE:
            raise UnknownOption(str(key), _CHANGEABLE, where=where)
    return changes


DOCUMENT = Body(ScheduleDocument, _written_document, _read_document)
CHANGES = Body(ScheduleChanges, _written_document, _read_changes)
ANY_DOCUMENT = Body(
    ScheduleDocument, lambda arguments, _: arguments["document"], lambda document, _: {"document": document}
)


_Positive = Annotated[int, Meta(ge=1)]
_Workers = Annotated[int, Meta(ge=1, le=10_000)]


class Simulation(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Assumptions of a simulation, and what to change in the schedule for it."""

    span: Annotated[str, Meta(description="How long to simulate")] = "1d"
    start: Annotated[Instant | None, Meta(description="When it begins; by default now")] = None
    duration: Annotated[str, Meta(description="How long each run takes")] = "1s"
    fail_every: Annotated[_Positive | None, Meta(description="Every Nth run fails, with all its attempts")] = None
    outages: Annotated[
        list[Annotated[list[str], Meta(min_length=2, max_length=2)]],
        Meta(description="When no planner works, from and to: times with a zone, or from the beginning on (`+1h`)"),
    ] = []
    workers: Annotated[_Workers | None, Meta(description="Runs at a time; by default any number")] = None
    changes: Annotated[dict[str, Any], Meta(description="Another trigger or other options, as in a document")] = {}


def _written_simulation(arguments: Mapping[str, Any], path: Mapping[str, Any]) -> dict[str, Any]:
    assumed = arguments.get("assumptions") or SimulationOptions()
    changed = {"trigger": arguments.get("trigger"), **_options(arguments, "span", "assumptions", "start")}
    return {
        "span": format_duration(parse_duration(arguments.get("span", "1d"), "span")),
        "start": arguments.get("start"),
        "duration": format_duration(parse_duration(assumed.duration, "duration")),
        "fail_every": assumed.fail_every,
        "outages": [[_moment(moment) for moment in outage] for outage in assumed.outages],
        "workers": assumed.workers,
        "changes": _written_document(changed, path),
    }


def _moment(moment: datetime | str) -> str:
    return written_instant(moment) if isinstance(moment, datetime) and moment.tzinfo is not None else str(moment)


def _read_simulation(body: Simulation, path: Mapping[str, Any]) -> dict[str, Any]:
    if body.changes.get("name", path["name"]) != path["name"]:
        raise Invalid(f"changes.name is {body.changes['name']!r:.80}, but the path says {path['name']!r:.80}")
    assumptions = SimulationOptions(
        duration=body.duration,
        fail_every=body.fail_every,
        outages=[(begin, end) for begin, end in body.outages],
        workers=body.workers,
    )
    changes = _read_changes(body.changes, path)
    return {"span": body.span, "start": body.start, "assumptions": assumptions, **changes}


SIMULATION = Body(Simulation, _written_simulation, _read_simulation)


def payload_of_document(error: BadPayload, body: Mapping[str, Any]) -> str:
    """Return where the payload is that an error is about; its message names the schedule."""
    places = (
        place
        for place, document in enumerate(body["documents"])
        if f"schedule {document.get('name')!r}:" in error.message
    )
    return f"$.documents[{next(places, 0)}].payload"


def _same(value: Any) -> Any:
    return value


def _localized(fire: Fire) -> Fire:
    """Put the fire's local time into its zone: JSON only has the offset."""
    return replace(fire, local=fire.plan_time.astimezone(ZoneInfo(fire.zone)))


def _preview_in(plain: Mapping[str, Any]) -> DocumentPreview:
    preview = msgspec.convert(plain, DocumentPreview)
    return replace(preview, fires=tuple(map(_localized, preview.fires)))


FIRE = Answer(Fire, _same, lambda plain: _localized(msgspec.convert(plain, Fire)))
DOCUMENT_PREVIEW = Answer(DocumentPreview, _same, _preview_in)
EVENT = Answer(Event, _same, event_in)
