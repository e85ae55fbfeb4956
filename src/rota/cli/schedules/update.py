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
from rota.cli.terminal.format import Cell, Columns, rfc3339, text_cell
from rota.cli.terminal.output import emit, json_text, on_terminal, print_json, print_rows
from rota.cli.terminal.payload import arguments_of
from rota.client.client import Client
from rota.core.schedules.backoff import cadence_warnings
from rota.core.schedules.diff import FieldChange, changes
from rota.core.schedules.documents import document_of, merged, parse
from rota.core.schedules.preview import Fire, upcoming
from rota.core.schedules.schedule import Schedule
from rota.core.schedules.view import view
from rota.values.instants import micros_at
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
        job_definition = await client.job(parsed.job)
        return created, await client.schedules.preview(name, _FIRES), await client.time(), job_definition

    created, fires, now, job_definition = ask(database, command)
    for warning in cadence_warnings(created.definition, job_definition, name, micros_at(now)):
        click.echo(f"warning: {warning}", err=True)
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

    Options that are not given stay as they are. It shows what changes, and the next plan times before and after.
    """
    document = document_from(options) | ({} if job is None else {"job": job})

    async def command(client: Client) -> Any:
        old = await client.schedules.get(name)
        new = dict(document)
        if payload is not None:
            new["payload"] = arguments_of(payload, Limits(client.config.max_payload))
        parsed = parse(merged(document_of(name, old.definition), new))
        definition = await client.schedules.define(*parsed)
        now = await client.time()
        before = upcoming(old.definition, name, micros_at(now), _FIRES)
        after = upcoming(definition, name, micros_at(now), _FIRES)
        changed = changes(document_of(name, old.definition), document_of(name, definition))
        if changed and not dry_run:
            old = await client.schedules.update(name, actor=actor(), **new)
        return old, changed, before, after

    schedule, changed, before, after = ask(database, command)
    if as_json:
        facts = {
            "changes": changed,
            "fires_before": _times(before),
            "fires_after": _times(after),
            "applied": not dry_run,
        }
        print_json({"schedule": view(schedule), **facts})
        return
    print_changes(changed)
    if not changed and not on_terminal():
        click.echo("note: nothing changes", err=True)
    if on_terminal() and changed:
        _print_next(schedule, before, after)
        _print_remarks(schedule, dry_run=dry_run)


def print_changes(changed: Sequence[FieldChange]) -> None:
    rows = [[text_cell(change.key), _value(change.before, "red"), _value(change.after, "green")] for change in changed]
    print_rows(CHANGE_COLUMNS, rows, none="nothing changes")


def _value(value: Any, style: str) -> Cell:
    if value is None:
        return Cell("", "—", "dim")
    text = value if isinstance(value, str) else json_text(value)
    return Cell(text, None, style)


def _print_next(schedule: Schedule, before: Sequence[Fire], after: Sequence[Fire]) -> None:
    emit("")
    for word, fires in (("before", before), ("after", after)):
        emit(f"next {word:<7} {', '.join(local_time(fire.plan_time, schedule) for fire in fires) or '—'}")


def _print_remarks(schedule: Schedule, *, dry_run: bool) -> None:
    if dry_run:
        click.echo("note: nothing was changed (--dry-run)", err=True)
    elif schedule.owner not in _OWN:
        where = "its declaration changes" if schedule.owner == "code" else "that file is applied again"
        click.echo(f"note: it belongs to {schedule.owner}; the change lasts until {where}", err=True)


def _times(fires: Sequence[Fire]) -> list[str]:
    return [rfc3339(fire.plan_time) for fire in fires]


def dates(instants: Sequence[datetime]) -> str:
    return ", ".join(f"{at:%Y-%m-%d %H:%M:%S}Z" for at in instants) or "—"


COMMANDS = (create, update)
