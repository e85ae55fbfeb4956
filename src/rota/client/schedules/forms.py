"""Forms of schedules in requests and answers: documents, which routes, remote clients and files share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from rota.core.calendar.notation import written_instant
from rota.core.ledger.audit import Event, event_in
from rota.core.ledger.occurrences import Occurrence, OccurrencePage, PagePosition, read_place, written_place
from rota.core.planning.question import SimulationReport
from rota.core.schedules.document_shape import ScheduleChanges, ScheduleDocument
from rota.core.schedules.documents import KEYS, OTHER_KEYS, changes_of, parse
from rota.core.schedules.plan_times import Fire
from rota.core.schedules.view import ScheduleView, schedule_of, view
from rota.core.schedules.vocabulary import translated
from rota.errors import BadPayload, UnknownOption
from rota.verbs import examples
from rota.verbs.pages import Cursor, cursor_at, foreign_cursor, place_of
from rota.verbs.verb import verb
from rota.verbs.wire import Answer, Body, Wired, answer_in

SCHEDULE = Answer(ScheduleView, view, schedule_of)
schedule_verb = partial(verb, answer=SCHEDULE, gives=examples.SCHEDULE)
"""Declaration of a verb that answers a schedule."""


_OTHERS = ("name", "job", "trigger")
_CHANGEABLE = tuple(key for key in (*KEYS, *OTHER_KEYS) if key != "name")


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in _OTHERS}


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


def written_changes(changes: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Write changes of a schedule as JSON has them; a `trigger` of Python by its key."""
    return changes_of(name, changes.get("job"), changes.get("trigger"), _options(changes))


def written_outages(outages: Iterable[Iterable[datetime | str]]) -> list[list[str]]:
    """Write outages as texts; what is no outage is left to the verb to refuse."""
    return [[_moment(moment) for moment in outage] for outage in outages]


def _moment(moment: datetime | str) -> str:
    return written_instant(moment) if isinstance(moment, datetime) and moment.tzinfo is not None else str(moment)


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


def _report_in(plain: Mapping[str, Any]) -> SimulationReport:
    report = msgspec.convert(plain, SimulationReport)
    return replace(report, fires=tuple(map(_localized, report.fires)))


SIMULATION = Answer(SimulationReport, _same, _report_in)
EVENT = Answer(Event, _same, event_in)


def _written_page(page: OccurrencePage) -> dict[str, Any]:
    return {"items": page.occurrences, "next_cursor": _cursor_after(page.next)}


def _page_in(plain: Mapping[str, Any]) -> OccurrencePage:
    return OccurrencePage(answer_in(plain["items"], list[Occurrence]), _place_in(plain["next_cursor"]))


def _cursor_after(place: PagePosition | None) -> str | None:
    return None if place is None else cursor_at(written_place(place))


def _place_in(cursor: str | None) -> PagePosition | None:
    if cursor is None:
        return None
    try:
        return read_place(place_of(cursor))
    except (TypeError, ValueError, OverflowError):
        raise foreign_cursor(cursor) from None


OCCURRENCE_PAGE = Answer(Occurrence, _written_page, _page_in, is_page=True)
AfterPlace = Annotated[PagePosition | None, Wired(Cursor | None, _cursor_after, _place_in)]
