"""`rota schedule simulate`: what schedules would do. `preview` is the same with another look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rota.cli.options import params_of
from rota.cli.schedules.files import owner_of, read_schedules
from rota.cli.schedules.schedule_format import print_fires
from rota.cli.schedules.schedule_options import document_from, policy_options, trigger_options
from rota.cli.terminal.format import Cell, Columns, rfc3339, span_cell, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_rows
from rota.cli.verbs.looks import Reply
from rota.cli.verbs.verb_command import verb_command
from rota.cli.verbs.verb_options import Form
from rota.client.client import Client
from rota.client.schedules.schedules import SchedulesClient
from rota.core.calendar.describe import describe
from rota.core.planning.question import SimulatedRun, SimulationReport, decided
from rota.core.schedules.documents import document_of, merged, parse
from rota.core.schedules.schedule import ScheduleDefinition
from rota.core.schedules.view import policies
from rota.errors import Invalid

_EVENT_COLUMNS = Columns(
    ("plan_time", "outcome", "scope", "started", "took", "attempt", "reason"),
    cut=("scope", "reason"),
    spare=("scope", "attempt"),
)
_STYLES = {
    "run": "green",
    "failed": "red",
    "skipped": "yellow",
    "missed": "red",
    "covered": "blue",
    "cancelled": "yellow",
}


def _changes() -> Form:
    """Return the options that try another trigger or other policies."""
    params = params_of(lambda command: trigger_options(policy_options(command)))
    names = [param.name or "" for param in params]
    return Form(("changes",), params, lambda values: _given("changes", document_from({n: values[n] for n in names})))


def _file() -> Form:
    """Return the options of a file of schedules."""
    params = [
        click.Option(["--file"], metavar="FILE", help="A file of schedules, or -, instead of NAME."),
        click.Option(["--owner"], metavar="NAME", help="Owner of the schedules, instead of the file's `owner`."),
    ]

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        if values["file"] is None:
            return {}
        content = read_schedules(values["file"])
        return {"documents": content.documents, "owner": values["owner"] or owner_of(content, values["file"])}

    return Form(("documents", "owner"), params, read)


def _given(name: str, value: Any) -> dict[str, Any]:
    return {name: value} if value else {}


def _outage(text: str) -> tuple[str, str]:
    begin, dots, end = text.partition("..")
    if not dots:
        raise Invalid(
            f"--outage {text!r} has no ..", hint="write 2026-01-31T08:00:00Z..2026-01-31T10:00:00Z or +1h..+3h"
        )
    return begin, end


async def _definition(client: Client, _: Any, arguments: Mapping[str, Any]) -> ScheduleDefinition | None:
    """Return the definition of the schedule that was asked about, after its changes."""
    name = arguments.get("name")
    if name is None:
        return None
    old = document_of(name, (await client.schedules.get(name)).definition)
    return await client.schedules.define(*parse(merged(old, arguments.get("changes", {}))))


def _show(reply: Reply) -> None:
    """Print a summary, then as many plan times as were asked for, and say what was cut."""
    report: SimulationReport = reply.value
    for difference in report.schedules:
        for problem in difference.problems:
            click.echo(f"error: {difference.name}: {problem.detail}", err=True)
        for warning in difference.warnings:
            click.echo(f"warning: {difference.name}: {warning}", err=True)
    if report.truncated:
        click.echo(f"note: {_cut_short(report)}", err=True)
    if on_terminal():
        _print_summary(report, reply.also)
    print_rows(_EVENT_COLUMNS, [_row(event) for event in report.events], none=_nothing(reply.also))
    if report.unlisted:
        click.echo(f"note: {report.unlisted} more plan times are counted and not listed; raise --limit", err=True)


def _print_summary(report: SimulationReport, definition: ScheduleDefinition | None) -> None:
    for difference in report.schedules:
        emit(f"{difference.name}: {difference.rule or difference.kind}")
        if difference.durations:
            emit(f"  durations: {difference.durations}")
    for _, sentence in [] if definition is None else policies(definition):
        emit(f"  {sentence}")
    counts = ", ".join(f"{kind} {count}" for kind, count in report.counts.items() if count)
    emit(f"{counts or 'nothing'}, from {rfc3339(report.from_at)} until {rfc3339(report.until_at)}\n")


def _cut_short(report: SimulationReport) -> str:
    until = rfc3339(report.until_at)
    words = f"that is too long for one simulation: it ends at {until}, after {decided(report.counts)} plan times"
    return f"{words}; continue with --from {until}"


def _nothing(definition: ScheduleDefinition | None) -> str:
    why = "" if definition is None or definition.awaited is None else f": {_why_none(definition)}"
    return f"nothing happens{why}"


def _why_none(definition: ScheduleDefinition) -> str:
    if definition.follows is not None:
        return "it has no times of its own: it follows its last run"
    if definition.awaited is not None:
        return f"it has no times of its own: it runs {describe(definition.rule)}"
    return "the schedule has ended"


def _row(event: SimulatedRun) -> list[Cell]:
    outcome = event.kind if event.count == 1 else f"{event.kind} × {event.count}"
    began, ended = event.started_at, event.finished_at
    return [
        Cell(rfc3339(event.plan_time), f"{event.plan_time:%Y-%m-%d %H:%M:%S}Z"),
        Cell(outcome, outcome, _STYLES.get(event.kind, "")),
        text_cell(None if event.scope == "global/global" else event.scope),
        Cell("") if began is None else Cell(rfc3339(began), f"{began:%H:%M:%S}Z"),
        span_cell(began, ended, ended or event.plan_time) if ended else Cell(""),
        text_cell(event.attempt or None),
        text_cell(_why(event)),
    ]


def _why(event: SimulatedRun) -> str | None:
    if event.to_at is None:
        return event.reason
    reach = f"up to {rfc3339(event.to_at)}"
    return f"{reach}: {event.reason}" if event.reason else f"{reach}, by the run that follows"


simulate = verb_command(
    "schedules",
    SchedulesClient.simulate,
    _show,
    "rota schedule simulate news --for 1d --duration 45m",
    "rota schedule simulate news --for 1d --duration 45m --overlap queue_one",
    "rota schedule simulate news --for 6h --outage +1h..+3h --catch-up all",
    "rota schedule simulate news --for 2h --fail-every 3 --failure retry",
    "rota schedule simulate --file schedules.toml --for 1d",
    words="Simulate what a schedule would do.\n\nOptions try another trigger, or other policies. Nothing is stored.",
    settings={
        "name": {"required": False},
        "span": {"names": ("--for",)},
        "start": {"names": ("--from",)},
        "outages": {
            "names": ("--outage",),
            "type": _outage,
            "multiple": True,
            "metavar": "FROM..TO",
            "help": "The planner is down: two times, or +1h..+3h. Repeatable.",
        },
    },
    forms=(_changes, _file),
    also=_definition,
    code=lambda reply: Invalid.exit_code if any(each.problems for each in reply.value.schedules) else 0,
)


def _calendar_only() -> Form:
    """Leave out the options that only a simulation needs."""
    names = ("span", "changes", "documents", "owner", "duration", "fail_every", "outages", "workers")
    return Form(names, (), lambda _: {"span": "0s"})


preview = verb_command(
    "schedules",
    SchedulesClient.simulate,
    lambda reply: print_fires(reply.value.fires, reply.now, none=_why_none(reply.also)),
    "rota schedule preview news --limit 20",
    "rota schedule preview news --after 2026-10-25T00:00:00Z --json",
    name="preview",
    words="List the next plan times of a schedule.\n\nEffects of daylight saving time are marked.",
    settings={
        "limit": {"names": ("-n", "--limit"), "default": 10, "show_default": True},
        "start": {"names": ("--after",), "help": "Only plan times after this.  [default: now]"},
    },
    forms=(_calendar_only,),
    also=_definition,
)

COMMANDS = (simulate, preview)
