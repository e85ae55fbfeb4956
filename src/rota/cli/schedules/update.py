"""`rota schedule create|update`: create and change schedules, and show the effect on their plan times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from rota.cli.connect import actor, ask
from rota.cli.options import examples, shared
from rota.cli.schedules.schedule_format import CHANGED_COLUMNS, changed_row, local_time, print_fires
from rota.cli.schedules.schedule_options import definition_options, document_from
from rota.cli.terminal.format import Cell, Columns, text_cell
from rota.cli.terminal.output import emit, json_text, on_terminal, print_json, print_rows
from rota.cli.terminal.payload import arguments_of
from rota.client.client import Client
from rota.core.schedules.diff import Difference, FieldChange
from rota.core.schedules.documents import parse
from rota.core.schedules.schedule import Schedule
from rota.core.schedules.view import view
from rota.values.json import Limits

CHANGE_COLUMNS = Columns(("field", "before", "after"), cut=("before", "after"))
_OWN = ("api", "cli")
_FIRES = 3


@click.command(
    epilog=examples(
        'rota schedule create news crawl \'{"url": "https://example.com"}\' --every 30m',
        "rota schedule create report monthly --cron '0 9 1 * *' --tz Europe/Berlin --catch-up all",
        "rota schedule create sync pull --after 5m --failure pause",
        'rota schedule create bills invoice \'{"account": "{scope.id}"}\' --every 1d --scope account/1',
        "rota schedule create day crawl @payload.json --every 10m --window '09:00-17:00 mon-fri' --set priority=5",
    )
)
@click.argument("name")
@click.argument("job")
@click.argument("payload", metavar="[PAYLOAD_JSON | @FILE | -]", default="{}")
@definition_options
@click.option("--disabled", is_flag=True, help="Plan no runs before `rota schedule enable`.")
@shared
def create(
    name: str, job: str, payload: str, disabled: bool, database: str | None, as_json: bool, **options: Any
) -> None:
    """Create a schedule for a job.

    Give one of --cron, --every, --after, --following and --once. Texts in the payload may contain {plan_time},
    {schedule}, {scope.kind} and {scope.id}.
    """
    document = {"name": name, "job": job, **document_from(options)}
    if disabled:
        document["enabled"] = False

    async def command(client: Client) -> Any:
        arguments = arguments_of(payload, Limits(client.config.max_payload))
        parsed = parse({**document, "payload": arguments} if arguments else document)
        created = await client.schedules.create(
            parsed.name,
            parsed.job,
            parsed.trigger,
            owner="cli",
            actor=actor(),
            **parsed.options,
        )
        return created, (await client.schedules.simulate(name, "0s", limit=_FIRES)).fires, await client.time()

    created, fires, now = ask(database, command)
    _print_warnings(created.warnings)
    if as_json:
        print_json(view(created))
        return
    print_rows(CHANGED_COLUMNS, [changed_row(created, now)], none="")
    if on_terminal() and fires:
        emit("")
        print_fires(fires, now, none="")


@click.command(
    epilog=examples(
        "rota schedule update news --every 15m",
        "rota schedule update news --overlap queue_one --set description=null",
        "rota schedule update news --cron '0 9 * * MON-FRI' --tz Europe/Berlin --dry-run",
    )
)
@click.argument("name")
@click.option("--job", metavar="NAME", help="Another job.")
@click.option("--payload", metavar="JSON | @FILE | -", help="Payload of its runs from now on.")
@definition_options
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@shared
def update(
    name: str, job: str | None, payload: str | None, dry_run: bool, database: str | None, as_json: bool, **options: Any
) -> None:
    """Change a schedule, from now on.

    Options that are not given stay as they are. It shows what changes, and the next plan times before and after. With
    --json it prints the schedule, and with --dry-run the report of the simulation that shows the change.
    """
    document = document_from(options) | ({} if job is None else {"job": job})

    async def command(client: Client) -> Any:
        new = dict(document)
        if payload is not None:
            new["payload"] = arguments_of(payload, Limits(client.config.max_payload))
        # Only people are told what changes: a program reads it from the answer.
        report = await client.schedules.simulate(name, "0s", changes=new) if dry_run or not as_json else None
        act = client.schedules.get(name) if dry_run else client.schedules.update(name, actor=actor(), **new)
        return await act, report

    schedule, report = ask(database, command)
    _print_warnings(schedule.warnings if report is None else report.schedules[0].warnings)
    if as_json:
        print_json(view(schedule) if report is None else report)
        return
    assert report is not None
    (compared,) = report.schedules
    changed = compared.changes
    print_changes(changed)
    if not changed and not on_terminal():
        click.echo("note: nothing changes", err=True)
    if on_terminal() and changed:
        _print_next(schedule, compared)
        _print_remarks(schedule, dry_run=dry_run)


def print_changes(changed: Sequence[FieldChange]) -> None:
    rows = [[text_cell(change.key), _value(change.before, "red"), _value(change.after, "green")] for change in changed]
    print_rows(CHANGE_COLUMNS, rows, none="nothing changes")


def _value(value: Any, style: str) -> Cell:
    if value is None:
        return Cell("", "—", "dim")
    text = value if isinstance(value, str) else json_text(value)
    return Cell(text, None, style)


def _print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def _print_next(schedule: Schedule, compared: Difference) -> None:
    emit("")
    for word, times in (("before", compared.fires_before), ("after", compared.fires_after)):
        emit(f"next {word:<7} {', '.join(local_time(at, schedule) for at in times) or '—'}")


def _print_remarks(schedule: Schedule, *, dry_run: bool) -> None:
    if dry_run:
        click.echo("note: nothing was changed (--dry-run)", err=True)
    elif schedule.owner not in _OWN:
        where = "its declaration changes" if schedule.owner == "code" else "that file is applied again"
        click.echo(f"note: it belongs to {schedule.owner}; the change lasts until {where}", err=True)


def dates(instants: Sequence[datetime]) -> str:
    return ", ".join(f"{at:%Y-%m-%d %H:%M:%S}Z" for at in instants) or "—"


COMMANDS = (create, update)
