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
from rota.client.client import Client
from rota.core.ledger.backfill import RAN, Backfill
from rota.core.ledger.occurrences import Occurrence
from rota.core.schedules.schedule import Schedule
from rota.core.states import RunState
from rota.errors import UnknownRun

LONGEST_PAGE = 10_000
_DAY, _SHORTEST, _NEXT = timedelta(days=1), timedelta(seconds=1), timedelta(microseconds=1)


class RecentOccurrences(msgspec.Struct, frozen=True):
    """Occurrences in the order of plan times. `truncated`: older ones in the requested time were left out."""

    items: Sequence[Occurrence]
    truncated: bool


async def recall(
    client: Client, name: str, from_at: datetime | None, to_at: datetime | None, limit: int
) -> RecentOccurrences:
    end = to_at or await client.time()
    found = await _Past(client, name, limit).newest(from_at or end - _DAY, end, limit + 1)
    kept = found[-limit:]
    return RecentOccurrences([await _as_it_went(client, one, found) for one in kept], len(found) > limit)


class _Past(msgspec.Struct, frozen=True):
    client: Client
    name: str
    limit: int

    async def newest(self, from_at: datetime, to_at: datetime, wanted: int) -> list[Occurrence]:
        """Return the newest occurrences. A time with more than a page is halved, and its later half read first."""
        page = min(self.limit * 2 + 1, LONGEST_PAGE)
        found = list(await self.client.schedules.occurrences(self.name, from_at, to_at, limit=page))
        if len(found) < page or to_at - from_at <= _SHORTEST:
            return found[-wanted:]
        middle = from_at + (to_at - from_at) / 2
        late = await self.newest(middle, to_at, wanted)
        if len(late) >= wanted:
            return late
        early = await self.newest(from_at, middle - _NEXT, wanted)
        whole = [one for one in early if one not in late] + late  # a range that spans both halves is in both
        return sorted(whole, key=_began)[-wanted:]


def _began(one: Occurrence) -> datetime:
    at = one.plan_time or one.from_at
    assert at is not None
    return at


async def _as_it_went(client: Client, one: Occurrence, known: Sequence[Occurrence]) -> Occurrence:
    """Return a plan time that was coalesced into a skipped run as skipped, for the same reason."""
    if one.kind != "coalesced" or one.run_id is None:
        return one
    state, reason = next(
        ((other.state, other.reason) for other in known if other.run_id == one.run_id and other.state), (None, None)
    )
    if state is None:
        try:
            run = await client.get(one.run_id)
        except UnknownRun:  # pruned
            return one
        state, reason = run.state.value, run.reason
    if state != RunState.SKIPPED.value:
        return one
    return msgspec.structs.replace(one, kind="skipped", state=state, reason=reason)


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

    That is ran, skipped, coalesced, missed, paused, pruned or pending. The newest --limit are listed, oldest first.
    """

    async def question(client: Client) -> tuple[Schedule, RecentOccurrences]:
        return await client.schedules.get(name), await recall(client, name, from_at, to_at, limit)

    schedule, found = ask(database, question)
    if as_json:
        print_json({"schedule": name, "items": found.items, "truncated": found.truncated})
        return
    _print_occurrences(found.items, schedule)
    if found.truncated:
        click.echo(f"note: only the newest {limit} are listed; raise --limit, or give an earlier --to", err=True)


def _print_occurrences(found: Sequence[Occurrence], schedule: Schedule) -> None:
    """Print occurrences; on a terminal without the columns of ranges, if there are none."""
    rows = [_row(one, schedule) for one in found]
    idle = set()
    if on_terminal():
        idle |= set() if any(one.to_at for one in found) else {"to"}
        idle |= set() if any(one.count != 1 for one in found) else {"count"}
    kept = [place for place, title in enumerate(_COLUMNS.titles) if title not in idle]
    columns = msgspec.structs.replace(_COLUMNS, titles=tuple(_COLUMNS.titles[place] for place in kept))
    print_rows(columns, [[row[place] for place in kept] for row in rows], none="no plan times")


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
    again = f"run {one.again.run_id}, created in its place, is {one.again.state}"
    return f"{one.reason}; {again}" if one.reason else again


def _instant(at: datetime | None, schedule: Schedule) -> Cell:
    return Cell("") if at is None else Cell(rfc3339(at), local_time(at, schedule))


@click.command(epilog=examples("rota schedule verify news", "rota schedule verify news --json"))
@click.argument("name")
@shared
def verify(name: str, database: str | None, as_json: bool) -> int:
    """Check that every plan time is accounted for exactly once.

    The exit code is 1 if one is not.
    """
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
@click.option("--from", "from_at", type=instant_of, required=True, metavar="TIME", help="First plan time.")
@click.option("--to", "to_at", type=instant_of, required=True, metavar="TIME", help="Last plan time.")
@click.option(
    "--ran",
    type=click.Choice(RAN),
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
def backfill(name: str, dry_run: bool, yes: bool, database: str | None, as_json: bool, **wanted: Any) -> None:
    """Create runs for past plan times that have none.

    In a pipe it prints the ids of the runs.
    """

    def run(*, dry: bool) -> Backfill:
        return ask(database, lambda client: client.schedules.backfill(name, **wanted, dry_run=dry, actor=actor()))

    found = run(dry=True)
    if not dry_run and found.count:
        if not yes:
            require_consent(f"{_counted(found)}: create them?", command=f"rota schedule backfill {name} …")
        found = run(dry=False)
    if as_json:
        print_json(found)
    elif on_terminal():
        emit(f"{_counted(found)}{'' if found.dry_run else ': created'}")
    else:
        for line in [str(found.count)] if dry_run else found.runs:
            emit(line)


def _counted(found: Backfill) -> str:
    again = f", {found.retried} of them again" if found.retried else ""
    left = [
        (found.already, "already ran"),
        (found.pending, "are pending"),
        (found.known, "are only known as a range"),
        (found.held, "are covered by another run"),
    ]
    rest = "".join(f"; {count} {words}" for count, words in left if count)
    return f"{found.count} run{'' if found.count == 1 else 's'} of {found.schedule}{again}{rest}"


COMMANDS = (occurrences, verify, backfill)
