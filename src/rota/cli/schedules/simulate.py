"""`rota schedule preview|simulate`: the next plan times of a schedule, and what it would do."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from rota.cli.connect import ask
from rota.cli.options import examples, instant_of, shared
from rota.cli.schedules.schedule_format import print_fires
from rota.cli.schedules.schedule_options import document_from, policy_options, trigger_options
from rota.cli.terminal.format import Cell, Columns, rfc3339, span_cell, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_json, print_rows
from rota.cli.verbs.verb_command import verb_command
from rota.client.client import Client
from rota.client.schedules.schedules import SchedulesClient
from rota.core.calendar.describe import describe
from rota.core.planning.simulation_report import SimulatedRun, SimulationOptions, SimulationReport
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
_MOST_SHOWN = 200


@click.command(
    epilog=examples(
        "rota schedule simulate news --for 1d --duration 45m",
        "rota schedule simulate news --for 1d --duration 45m --overlap queue_one",
        "rota schedule simulate news --for 6h --outage +1h..+3h --catch-up all",
        "rota schedule simulate news --for 2h --fail-every 3 --failure retry",
    )
)
@click.argument("name")
@click.option("--for", "length", default="1d", show_default=True, metavar="DURATION", help="How long to simulate.")
@click.option("--from", "start", type=instant_of, metavar="TIME", help="Start of the simulation.  [default: now]")
@click.option("--duration", default="1s", show_default=True, metavar="DURATION", help="How long each run takes.")
@click.option("--fail-every", type=int, metavar="N", help="Every Nth run fails, with all its attempts.")
@click.option(
    "--outage",
    "outages",
    multiple=True,
    metavar="FROM..TO",
    help="The planner is down: two times, or +1h..+3h. Repeatable.",
)
@click.option("--workers", type=int, metavar="N", help="Runs at a time.  [default: unlimited]")
@trigger_options
@policy_options
@shared
def simulate(
    name: str, length: str, start: datetime | None, database: str | None, as_json: bool, **options: Any
) -> None:
    """Simulate what a schedule would do.

    Options try another trigger, or other policies. Nothing is stored.
    """
    assumed = {key: options.pop(key) for key in ("duration", "fail_every", "workers")}
    outages = options.pop("outages")
    changes = document_from(options)

    async def question(client: Client) -> Any:
        schedule = await client.schedules.get(name)
        what_if = SimulationOptions(**assumed, outages=tuple(map(_outage, outages)))
        report = await client.schedules.simulate(name, length, what_if, start=start, **changes)
        parsed = parse(merged(document_of(name, schedule.definition), changes))
        return await client.schedules.define(*parsed), report

    definition, report = ask(database, question)
    if report.truncated:
        click.echo(f"note: {_cut_short(report, length)}", err=True)
    if as_json:
        print_json({"schedule": name, "rule": report.rule, **_plain(report)})
        return
    if on_terminal():
        emit(report.rule)
        for _, sentence in policies(definition):
            emit(f"  {sentence}")
        emit("")
    print_rows(_EVENT_COLUMNS, [_row(event) for event in _shown(report)], none=_nothing(definition))
    if on_terminal():
        _print_summary(report)
    elif report.events_truncated:
        click.echo(f"note: only the first {len(report.events)} are listed; --json counts all", err=True)


def _cut_short(report: SimulationReport, length: str) -> str:
    decided = sum(report.counts.values()) - report.counts.get("failed", 0)
    until = rfc3339(report.until_at)
    words = f"{length} is too long for one simulation: it ends at {until}, after {decided} plan times"
    return f"{words}; continue with --from {until}"


def _nothing(definition: ScheduleDefinition) -> str:
    return "nothing happens" if definition.awaited is None else f"nothing happens: {_why_none(definition)}"


def _why_none(definition: ScheduleDefinition) -> str:
    if definition.follows is not None:
        return "it has no times of its own: it follows its last run"
    if definition.awaited is not None:
        return f"it has no times of its own: it runs {describe(definition.rule)}"
    return "the schedule has ended"


def _outage(text: str) -> tuple[str, str]:
    begin, dots, end = text.partition("..")
    if not dots:
        raise Invalid(
            f"--outage {text!r} has no ..", hint="write 2026-01-31T08:00:00Z..2026-01-31T10:00:00Z or +1h..+3h"
        )
    return begin, end


def _plain(report: SimulationReport) -> dict[str, Any]:
    return {
        "from": report.from_at, "until": report.until_at, "truncated": report.truncated, "counts": report.counts,
        "events": report.events, "events_truncated": report.events_truncated,
    }  # fmt: skip


def _shown(report: SimulationReport) -> tuple[SimulatedRun, ...]:
    return report.events[:_MOST_SHOWN] if on_terminal() else report.events


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


def _print_summary(report: SimulationReport) -> None:
    counts = ", ".join(f"{kind} {count}" for kind, count in report.counts.items() if count)
    emit(f"\n{counts or 'nothing'}, from {rfc3339(report.from_at)} until {rfc3339(report.until_at)}")
    if len(report.events) > _MOST_SHOWN:
        click.echo(f"note: only the first {_MOST_SHOWN} are listed; --json has {len(report.events)}", err=True)


preview = verb_command(
    "schedules",
    SchedulesClient.preview,
    lambda reply: print_fires(reply.value, reply.now, none=_why_none(reply.also.definition)),
    "rota schedule preview news -n 20",
    "rota schedule preview news --after 2026-10-25T00:00:00Z --json",
    words="List the next plan times of a schedule.\n\nEffects of daylight saving time are marked.",
    settings={"count": {"names": ("-n", "--count")}},
    also=lambda client, _, arguments: client.schedules.get(arguments["name"]),
)

COMMANDS = (preview, simulate)
