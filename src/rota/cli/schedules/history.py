"""`rota schedule occurrences|verify|backfill`: what became of plan times, and runs for those that have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import click
import msgspec

from rota.cli.connect import ask
from rota.cli.options import examples, instant_of, shared
from rota.cli.schedules.schedule_format import local_time
from rota.cli.terminal.format import Cell, Columns, rfc3339, run_id_cell, text_cell
from rota.cli.terminal.output import emit, on_terminal, print_json, print_rows
from rota.cli.verbs.looks import Reply
from rota.cli.verbs.verb_command import Consent, carries_out, verb_command
from rota.cli.verbs.verb_options import Word
from rota.client.client import Client
from rota.client.schedules.forms import OCCURRENCE_PAGE, AfterPlace
from rota.client.schedules.history import MOST_OCCURRENCES, Occurrences
from rota.client.schedules.schedules import SchedulesClient
from rota.core.ledger.backfill import RAN, Backfill
from rota.core.ledger.occurrences import Occurrence, OccurrencePage, PagePosition
from rota.core.schedules.schedule import Schedule
from rota.core.states import RunState
from rota.errors import UnknownRun
from rota.values.scope import scope_text
from rota.verbs.bounds import Bound, check
from rota.verbs.wire import decode

_DAY, _SHORTEST, _NEXT = timedelta(days=1), timedelta(seconds=1), timedelta(microseconds=1)


class RecentOccurrences(msgspec.Struct, frozen=True):
    """Occurrences in the order of plan times. `truncated`: older ones in the requested time were left out."""

    items: Sequence[Occurrence]
    truncated: bool


async def recent_occurrences(
    client: Client, name: str, from_at: datetime | None, to_at: datetime | None, limit: int
) -> RecentOccurrences:
    """Return the newest occurrences, and what else belongs to the plan time of the oldest one."""
    check(limit, Bound("limit", "limit", Occurrences, None, None))
    end = to_at or await client.time()
    reader = _OccurrenceReader(client, name, limit)
    newest, halved = await reader.newest(from_at or end - _DAY, end)
    first = max(len(newest) - limit, 0)
    items = [occurrence for occurrence in newest if _began(occurrence) >= _began(newest[first])]
    if halved:  # where the time was halved, a range of plan times was cut in two
        items = await reader.all(_began(items[0]), end)
    return RecentOccurrences(
        [await _with_fate_of_its_run(client, occurrence, newest) for occurrence in items],
        halved or len(items) < len(newest),
    )


class _OccurrenceReader(msgspec.Struct, frozen=True):
    client: Client
    name: str
    limit: int

    async def newest(self, from_at: datetime, to_at: datetime) -> tuple[list[Occurrence], bool]:
        """Return the newest occurrences, `limit` or more, and whether the time was halved for them: one with more than
        a page is, and its later half read first."""
        size = min(self.limit * 2 + 1, MOST_OCCURRENCES)
        page = await self.client.schedules.occurrence_page(self.name, from_at, to_at, limit=size)
        if page.next is None:
            return [*page.occurrences], False
        if to_at - from_at <= _SHORTEST:
            return await self.all(from_at, to_at), True
        middle = from_at + (to_at - from_at) / 2
        late, _ = await self.newest(middle, to_at)
        if len(late) >= self.limit:
            return late, True
        early, _ = await self.newest(from_at, middle - _NEXT)
        whole = [
            occurrence for occurrence in early if occurrence not in late
        ] + late  # a range that spans both halves is in both
        return sorted(whole, key=_began), True

    async def all(self, from_at: datetime, to_at: datetime) -> list[Occurrence]:
        """Return all occurrences in that time."""
        found: list[Occurrence] = []
        place: PagePosition | None = None
        ask = partial(self.client.schedules.occurrence_page, self.name, from_at, to_at, limit=MOST_OCCURRENCES)
        while True:
            page = await ask(after=place)
            found += page.occurrences
            place = page.next
            if place is None:
                return found


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
_COUNT = _COLUMNS.titles.index("count")
_STYLES = {"ran": "green", "missed": "red", "skipped": "yellow", "paused": "yellow", "pending": "blue"}


@carries_out(SchedulesClient.occurrence_page)
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
    type=int,
    default=100,
    show_default=True,
    metavar="N",
    help="Only the newest N; with --json or --cursor, a page of N.",
)
@click.option("--cursor", metavar="CURSOR", help="Continue after the page that ended with this cursor.")
@click.option("--each", is_flag=True, help="Also list each scope whose run succeeded or is in progress.")
@shared
def occurrences(
    name: str,
    from_at: datetime | None,
    to_at: datetime | None,
    limit: int,
    cursor: str | None,
    each: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """List plan times and what became of each.

    That is ran, skipped, coalesced, missed, paused, pruned or pending. The newest --limit are listed, oldest first,
    and all scopes of the oldest plan time. A plan time of several scopes is one line ("37 succeeded, 2 failed, 1
    cancelled"), and then those that did not succeed. With --json or --cursor, a page is listed: the oldest first, and
    the next ones by its cursor.
    """
    after = decode(cursor, AfterPlace, "cursor")

    async def page(client: Client) -> OccurrencePage:
        return await client.schedules.occurrence_page(name, from_at, to_at, limit=limit, after=after)

    async def question(client: Client) -> tuple[Schedule, RecentOccurrences | OccurrencePage]:
        recent = page(client) if cursor else recent_occurrences(client, name, from_at, to_at, limit)
        return await client.schedules.get(name), await recent

    if as_json:
        print_json(OCCURRENCE_PAGE.encode(ask(database, page)))
        return
    schedule, found = ask(database, question)
    if isinstance(found, OccurrencePage):
        _print_occurrences(found.occurrences, schedule, each=each)
        _print_next(found)
        return
    _print_occurrences(found.items, schedule, each=each)
    if found.truncated:
        click.echo(f"note: only the newest {limit} are listed; raise --limit, or give an earlier --to", err=True)


def _print_next(page: OccurrencePage) -> None:
    following = OCCURRENCE_PAGE.encode(page)["next_cursor"]
    if following is not None and on_terminal():
        click.echo(f"more: --cursor {following}", err=True)


def _print_occurrences(occurrences: Sequence[Occurrence], schedule: Schedule, *, each: bool) -> None:
    """Print occurrences; on a terminal without the columns of ranges, if there are none."""
    rows = [_row(occurrence, schedule) for occurrence in _summed(occurrences, each=each)]
    idle = set()
    if on_terminal():
        idle |= set() if any(occurrence.to_at for occurrence in occurrences) else {"to"}
        idle |= set() if any(row[_COUNT].plain != "1" for row in rows) else {"count"}
    places = [place for place, title in enumerate(_COLUMNS.titles) if title not in idle]
    columns = msgspec.structs.replace(_COLUMNS, titles=tuple(_COLUMNS.titles[place] for place in places))
    print_rows(columns, [[row[place] for place in places] for row in rows], none="no plan times")


def _summed(occurrences: Sequence[Occurrence], *, each: bool) -> Iterator[Occurrence]:
    """Yield occurrences, and before those of several scopes what became of all."""
    sums = {line.plan_time for line in occurrences if line.summary is not None}
    for line in occurrences:
        if line.summary is not None:
            kind = "skipped" if set(line.summary.states) == {RunState.SKIPPED} else "ran"
            count, words = line.summary.scopes, line.summary.words
            yield Occurrence(kind=kind, plan_time=line.plan_time, count=count, state=words, revision=line.revision)
        if each or line.plan_time not in sums or _did_not_succeed(line):
            yield line


def _did_not_succeed(occurrence: Occurrence) -> bool:
    state = occurrence.outcome
    return state is None or (RunState(state).is_final and state != RunState.SUCCEEDED.value)


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


async def _plan(client: Client, arguments: Mapping[str, Any]) -> Backfill | None:
    """Return what would be created, unless the command itself only asks that."""
    if arguments.get("dry_run"):
        return None
    return await client.schedules.backfill(**{**arguments, "dry_run": True})


def _question(plan: Backfill | None, _: Mapping[str, Any]) -> str | None:
    return f"{_counted(plan)}: create them?" if plan is not None and plan.count else None


def _show_backfill(reply: Reply) -> None:
    plan: Backfill = reply.value
    if on_terminal():
        emit(f"{_counted(plan)}{': created' if plan.runs else ''}")
    else:
        for line in [str(plan.count)] if plan.dry_run else plan.runs:
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


backfill = verb_command(
    "schedules",
    SchedulesClient.backfill,
    _show_backfill,
    "rota schedule backfill news --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z --dry-run",
    "rota schedule backfill news --from … --to … --ran failed --concurrency 5 --yes",
    words="Create runs for past plan times that have none.\n\nIn a pipe it prints the ids of the runs.",
    settings={
        "ran": {
            "type": Word(RAN, open_ended=True),
            "help": "Which plan times that have a run get another one: none, those whose run did not succeed, or all."
            "  [default: none]",
        },
        "dry_run": {"help": "Create nothing; count the runs."},
    },
    consent=Consent(_plan, _question),
)

COMMANDS = (occurrences, verify, backfill)
