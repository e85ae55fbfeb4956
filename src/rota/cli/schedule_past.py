"""`rota schedule occurrences|verify|backfill`: what became of plan times, and making up for those without a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from rota.cli.connecting import actor, ask
from rota.cli.consenting import require_consent, yes_option
from rota.cli.options import examples, instant_of, shared
from rota.cli.output import emit, on_terminal, print_json, print_rows
from rota.cli.recalling import LONGEST_PAGE, Recalled, recall
from rota.cli.schedule_words import local_time
from rota.cli.words import Cell, Columns, rfc3339, run_id_cell, text_cell
from rota.client import Client
from rota.core.backfilling import RAN, Backfill
from rota.core.occurrences import Occurrence
from rota.core.schedules import Schedule

_COLUMNS = Columns(
    ("from", "to", "what", "count", "scope", "state", "run", "reason"),
    cut=("scope", "reason"),
    spare=("scope", "run", "reason"),
)
_STYLES = {"ran": "green", "missed": "red", "skipped": "yellow", "paused": "yellow", "pending": "blue"}


@click.command(
    epilog=examples(
        "rota schedule occurrences news",
        "rota schedule occurrences news --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --json",
    )
)
@click.argument("name")
@click.option("--from", "from_at", type=instant_of, metavar="TIME", help="[default: a day before --to]")
@click.option("--to", "to_at", type=instant_of, metavar="TIME", help="[default: now]")
@click.option(
    "--limit", type=click.IntRange(1, LONGEST_PAGE), default=100, show_default=True, metavar="N", help="The newest."
)
@shared
def occurrences(
    name: str, from_at: datetime | None, to_at: datetime | None, limit: int, database: str | None, as_json: bool
) -> None:
    """Show what became of each plan time.

    It is one of ran, skipped, coalesced, missed, paused, pruned and pending. If there are many, it is the newest that
    are shown; among those the oldest is the first.
    """

    async def question(client: Client) -> tuple[Schedule, Recalled]:
        return await client.schedules.get(name), await recall(client, name, from_at, to_at, limit)

    schedule, found = ask(database, question)
    if as_json:
        print_json({"schedule": name, "items": found.items, "truncated": found.truncated})
        return
    _print_occurrences(found.items, schedule)
    if found.truncated:
        click.echo(f"note: these are the newest {limit}; older ones with --limit, or an earlier --to", err=True)


def _print_occurrences(found: Sequence[Occurrence], schedule: Schedule) -> None:
    """A person is spared the columns of ranges where there are none."""
    rows = [_row(one, schedule) for one in found]
    idle = set()
    if on_terminal():
        idle |= set() if any(one.to_at for one in found) else {"to"}
        idle |= set() if any(one.count != 1 for one in found) else {"count"}
    kept = [place for place, title in enumerate(_COLUMNS.titles) if title not in idle]
    columns = msgspec.structs.replace(_COLUMNS, titles=tuple(_COLUMNS.titles[place] for place in kept))
    print_rows(columns, [[row[place] for place in kept] for row in rows], none="it named no plan time then")


def _row(one: Occurrence, schedule: Schedule) -> list[Cell]:
    whole = one.scope is None or (one.scope.kind, one.scope.id) == ("global", "global")
    return [
        _instant(one.plan_time or one.from_at, schedule),
        _instant(one.to_at, schedule),
        Cell(one.kind, one.kind, _STYLES.get(one.kind, "")),
        text_cell(one.count),
        text_cell("" if whole or one.scope is None else f"{one.scope.kind}/{one.scope.id}"),
        text_cell(one.state),
        run_id_cell(one.run_id),
        text_cell(_why(one)),
    ]


def _why(one: Occurrence) -> str | None:
    if one.again is None:
        return one.reason
    again = f"run {one.again.run_id}, made in its place, is {one.again.state}"
    return f"{one.reason}; {again}" if one.reason else again


def _instant(at: datetime | None, schedule: Schedule) -> Cell:
    return Cell("") if at is None else Cell(rfc3339(at), local_time(at, schedule))


@click.command(epilog=examples("rota schedule verify news", "rota schedule verify news --json"))
@click.argument("name")
@shared
def verify(name: str, database: str | None, as_json: bool) -> int:
    """Check that every plan time is accounted for, exactly once. Exit code 1 if one is not."""
    found = ask(database, lambda client: client.schedules.verify(name))
    if as_json:
        print_json(found)
    elif on_terminal() and found.ok:
        emit(f"{found.plan_times} plan times, each accounted for once")
    else:
        for finding in found.findings:
            emit(finding.words)
    for stretch in found.unverified:
        click.echo(f"note: not verified: {stretch}", err=True)
    return 0 if found.ok else 1


@click.command(
    epilog=examples(
        "rota schedule backfill news --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z --dry-run",
        "rota schedule backfill news --from … --to … --ran failed --concurrency 5 --yes",
    )
)
@click.argument("name")
@click.option("--from", "from_at", type=instant_of, required=True, metavar="TIME", help="The first plan time.")
@click.option("--to", "to_at", type=instant_of, required=True, metavar="TIME", help="The last one.")
@click.option(
    "--ran",
    type=click.Choice(RAN),
    default="none",
    show_default=True,
    help="Which plan times that have a run get another: none, those whose run did not succeed, or all.",
)
@click.option("--concurrency", type=int, default=1, show_default=True, metavar="N", help="So many of them at once.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@yes_option
@shared
def backfill(name: str, dry_run: bool, yes: bool, database: str | None, as_json: bool, **wanted: Any) -> None:
    """Make runs for plan times of the past that have none.

    In a pipe it prints the ids of the runs.
    """

    def run(*, dry: bool) -> Backfill:
        return ask(database, lambda client: client.schedules.backfill(name, **wanted, dry_run=dry, actor=actor()))

    found = run(dry=True)
    if not dry_run and found.count:
        if not yes:
            require_consent(f"{_counted(found)}: make them?", command=f"rota schedule backfill {name} …")
        found = run(dry=False)
    if as_json:
        print_json(found)
    elif on_terminal():
        emit(f"{_counted(found)}{'' if found.dry_run else ': made'}")
    else:
        for line in [str(found.count)] if dry_run else found.runs:
            emit(line)


def _counted(found: Backfill) -> str:
    again = f", {found.retried} of them once more" if found.retried else ""
    left = [
        (found.already, "ran already"),
        (found.pending, "are still to come"),
        (found.known, "are only known as a range"),
        (found.held, "are the work of another run"),
    ]
    rest = "".join(f"; {count} {words}" for count, words in left if count)
    return f"{found.count} run{'' if found.count == 1 else 's'} of {found.schedule}{again}{rest}"


COMMANDS = (occurrences, verify, backfill)
