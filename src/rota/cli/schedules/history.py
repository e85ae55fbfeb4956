"""`rota schedule occurrences|verify|backfill`: what became of plan times, and runs for those that have none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

from rota.cli.connect import actor, ask
from rota.cli.options import examples, instant_of, shared
from rota.cli.schedules.schedule_format import local_time
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.format import Cell, Columns, rfc3339, run_id_cell, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_json, print_rows
from rota.cli.verbs.looks import Reply
from rota.cli.verbs.verb_command import carries_out, verb_command
from rota.cli.verbs.verb_options import Word
from rota.client.client import Client
from rota.client.schedules.schedules import SchedulesClient
from rota.core.ledger.backfill import RAN, Backfill
from rota.core.ledger.occurrences import Occurrence
from rota.core.schedules.schedule import Schedule
from rota.core.states import RunState
from rota.errors import UnknownRun
from rota.values.scope import scope_text

LONGEST_PAGE = 10_000
_DAY, _SHORTEST, _NEXT = timedelta(days=1), timedelta(seconds=1), timedelta(microseconds=1)


class RecentOccurrences(msgspec.Struct, frozen=True):
    """Occurrences in the order of plan times. `truncated`: older ones in the requested time were left out."""

    items: Sequence[Occurrence]
    truncated: bool


async def recent_occurrences(
    client: Client, name: str, from_at: datetime | None, to_at: datetime | None, limit: int
) -> RecentOccurrences:
    end = to_at or await client.time()
    occurrences = await _OccurrenceReader(client, name, limit).newest(from_at or end - _DAY, end, limit + 1)
    newest = await _with_whole_instant(client, name, occurrences[-limit:])
    return RecentOccurrences(
        [await _with_fate_of_its_run(client, occurrence, occurrences) for occurrence in newest],
        len(occurrences) > limit,
    )


async def _with_whole_instant(client: Client, name: str, newest: list[Occurrence]) -> list[Occurrence]:
    """Add what is missing of the oldest plan time: of many scopes, all or none are listed."""
    at = newest[0].plan_time if newest and newest[0].scope is not None else None
    if at is None:
        return newest
    whole = await client.schedules.occurrences(name, at, at, limit=LONGEST_PAGE)
    same = [occurrence for occurrence in whole if occurrence.plan_time == at]
    return [*same, *(occurrence for occurrence in newest if occurrence.plan_time != at)]


class _OccurrenceReader(msgspec.Struct, frozen=True):
    client: Client
    name: str
    limit: int

    async def newest(self, from_at: datetime, to_at: datetime, count: int) -> list[Occurrence]:
        """Return the newest occurrences. A time with more than a page is halved, and its later half read first."""
        page = min(self.limit * 2 + 1, LONGEST_PAGE)
        occurrences = list(await self.client.schedules.occurrences(self.name, from_at, to_at, limit=page))
        if len(occurrences) < page or to_at - from_at <= _SHORTEST:
            return occurrences[-count:]
        middle = from_at + (to_at - from_at) / 2
        late = await self.newest(middle, to_at, count)
        if len(late) >= count:
            return late
        early = await self.newest(from_at, middle - _NEXT, count)
        whole = [
            occurrence for occurrence in early if occurrence not in late
        ] + late  # a range that spans both halves is in both
        return sorted(whole, key=_began)[-count:]


def _began(occurrence: Occurrence) -> datetime:
    at = occurrence.plan_time or occurrence.from_at
    assert at is not None
    return at


async def _with_fate_of_its_run(client: Client, occurrence: Occurrence, others: Sequence[Occurrence]) -> Occurrence:
    """Return a plan time that was coalesced into a skipped run as skipped, for the same reason."""
    if occurrence.kind != "coalesced" or occurrence.run_id is None:
        return occurrence
    state, reason = next(
        ((other.state, other.reason) for other in others if other.run_id == occurrence.run_id and other.state),
        (None, None),
    )
    if state is None:
        try:
            run = await client.get(occurrence.run_id)
        except UnknownRun:  # pruned
            return occurrence
        state, reason = run.state.value, run.reason
    if state != RunState.SKIPPED.value:
        return occurrence
    return msgspec.structs.replace(occurrence, kind="skipped", state=state, reason=reason)


_COLUMNS = Columns(
    ("from", "to", "outcome", "count", "scope", "state", "run", "reason"),
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
@click.option(
    "--from", "from_at", type=instant_of, metavar="TIME", help="First plan time.  [default: a day before --to]"
)
@click.option("--to", "to_at", type=instant_of, metavar="TIME", help="Last plan time.  [default: now]")
@click.option(
    "--limit",
    type=click.IntRange(1, LONGEST_PAGE),
    default=100,
    show_default=True,
    metavar="N",
    help="Only the newest N.",
)
@shared
def occurrences(
    name: str, from_at: datetime | None, to_at: datetime | None, limit: int, database: str | None, as_json: bool
) -> None:
    """List plan times and what became of each.

    That is ran, skipped, coalesced, missed, paused, pruned or pending. The newest --limit are listed, oldest first,
    and all scopes of the oldest plan time.
    """

    async def question(client: Client) -> tuple[Schedule, RecentOccurrences]:
        return await client.schedules.get(name), await recent_occurrences(client, name, from_at, to_at, limit)

    schedule, recent = ask(database, question)
    if as_json:
        print_json({"schedule": name, "items": recent.items, "truncated": recent.truncated})
        return
    _print_occurrences(recent.items, schedule)
    if recent.truncated:
        click.echo(f"note: only the newest {limit} are listed; raise --limit, or give an earlier --to", err=True)


def _print_occurrences(occurrences: Sequence[Occurrence], schedule: Schedule) -> None:
    """Print occurrences; on a terminal without the columns of ranges, if there are none."""
    rows = [_row(occurrence, schedule) for occurrence in occurrences]
    idle = set()
    if on_terminal():
        idle |= set() if any(occurrence.to_at for occurrence in occurrences) else {"to"}
        idle |= set() if any(occurrence.count != 1 for occurrence in occurrences) else {"count"}
    places = [place for place, title in enumerate(_COLUMNS.titles) if title not in idle]
    columns = msgspec.structs.replace(_COLUMNS, titles=tuple(_COLUMNS.titles[place] for place in places))
    print_rows(columns, [[row[place] for place in places] for row in rows], none="no plan times")


def _row(occurrence: Occurrence, schedule: Schedule) -> list[Cell]:
    is_global = occurrence.scope is None or (occurrence.scope.kind, occurrence.scope.id) == ("global", "global")
    return [
        _instant(occurrence.plan_time or occurrence.from_at, schedule),
        _instant(occurrence.to_at, schedule),
        Cell(occurrence.kind, occurrence.kind, _STYLES.get(occurrence.kind, "")),
        text_cell(occurrence.count),
        text_cell("" if is_global or occurrence.scope is None else scope_text(occurrence.scope)),
        text_cell(occurrence.state),
        run_id_cell(occurrence.run_id),
        text_cell(_why(occurrence)),
    ]


def _why(occurrence: Occurrence) -> str | None:
    if occurrence.again is None:
        return occurrence.reason
    again = f"run {occurrence.again.run_id}, created in its place, is {occurrence.again.state}"
    return f"{occurrence.reason}; {again}" if occurrence.reason else again


def _instant(at: datetime | None, schedule: Schedule) -> Cell:
    return Cell("") if at is None else Cell(rfc3339(at), local_time(at, schedule))


def _show_report(reply: Reply) -> None:
    report = reply.value
    if on_terminal() and report.ok:
        emit(f"{report.plan_times} plan times, each accounted for once")
    else:
        for finding in report.findings:
            emit(finding.words)
    for stretch in report.unverified:
        click.echo(f"note: not verified: {stretch}", err=True)


verify = verb_command(
    "schedules",
    SchedulesClient.verify,
    _show_report,
    "rota schedule verify news",
    "rota schedule verify news --json",
    words="Check that every plan time is accounted for exactly once.\n\nThe exit code is 1 if one is not.",
    code=lambda reply: int(not reply.value.ok),
)


@carries_out(SchedulesClient.backfill)
@click.command(
    epilog=examples(
        "rota schedule backfill news --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z --dry-run",
        "rota schedule backfill news --from … --to … --ran failed --concurrency 5 --yes",
    )
)
@click.argument("name")
@click.option("--from", "from_at", type=instant_of, required=True, metavar="TIME", help="First plan time.")
@click.option("--to", "to_at", type=instant_of, required=True, metavar="TIME", help="Last plan time.")
@click.option(
    "--ran",
    type=Word(RAN, open_ended=True),
    default="none",
    show_default=True,
    help="Which plan times that have a run get another one: none, those whose run did not succeed, or all.",
)
@click.option(
    "--concurrency", type=int, default=1, show_default=True, metavar="N", help="How many of the runs may run at a time."
)
@click.option("--dry-run", is_flag=True, help="Create nothing; count the runs.")
@yes_option
@shared
def backfill(name: str, dry_run: bool, yes: bool, database: str | None, as_json: bool, **options: Any) -> None:
    """Create runs for past plan times that have none.

    In a pipe it prints the ids of the runs.
    """

    def run(*, dry: bool) -> Backfill:
        return ask(database, lambda client: client.schedules.backfill(name, **options, dry_run=dry, actor=actor()))

    plan = run(dry=True)
    if not dry_run and plan.count:
        if not yes:
            require_consent(f"{_counted(plan)}: create them?", command=f"rota schedule backfill {name} …")
        plan = run(dry=False)
    if as_json:
        print_json(plan)
    elif on_terminal():
        emit(f"{_counted(plan)}{'' if plan.dry_run else ': created'}")
    else:
        for line in [str(plan.count)] if dry_run else plan.runs:
            emit(line)


def _counted(backfill: Backfill) -> str:
    again = f", {backfill.retried} of them again" if backfill.retried else ""
    omitted = [
        (backfill.already, "already ran"),
        (backfill.pending, "are pending"),
        (backfill.known, "are only known as a range"),
        (backfill.held, "are covered by another run"),
    ]
    omissions = "".join(f"; {count} {words}" for count, words in omitted if count)
    return f"{backfill.count} run{'' if backfill.count == 1 else 's'} of {backfill.schedule}{again}{omissions}"


COMMANDS = (occurrences, verify, backfill)
