"""`rota explain`: why a plan time ran or not, or why a run is in its state."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import click

from rota.cli.connect import ask
from rota.cli.options import examples, shared
from rota.cli.terminal.format import one_field, visible
from rota.cli.terminal.output import emit, on_terminal, print_json
from rota.client.client import Client
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.schedules.plan_times import zone_of
from rota.errors import Invalid, NotFound, UnknownRun, UnknownSchedule

_HOUR = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9]")


@click.command(
    epilog=examples(
        "rota explain news                               why the newest plan time ran or did not",
        "rota explain news --at 2026-01-31T09:00:00Z     why this plan time ran or did not",
        "rota explain news --at 02:00                    the last 2 o'clock in the schedule's time zone",
        "rota explain b3e52e11                           why this run is in its state",
    )
)
@click.argument("subject", metavar="SCHEDULE | RUN")
@click.option(
    "--at",
    metavar="TIME",
    help="Plan time of the schedule; without a zone, in the schedule's.  [default: the newest]",
)
@shared
def explain(subject: str, at: str | None, database: str | None, as_json: bool) -> None:
    """Explain a run's state, or why a plan time ran or did not."""

    async def question(client: Client) -> Explanation:
        if at is None:
            return await _explain(client, subject)
        return await client.schedules.explain(subject, await _plan_time(client, subject, at))

    explanation = ask(database, question)
    if as_json:
        print_json(explanation)
    elif on_terminal():
        emit(
            "\n".join(
                visible(sentence) for sentence in (f"{explanation.verdict.replace('_', ' ')}:", *explanation.words)
            )
        )
    else:
        emit("\t".join([explanation.verdict, *map(one_field, explanation.words)]))


async def _plan_time(client: Client, schedule: str, text: str) -> datetime:
    """Read a time: with a zone, or in that of the schedule; an hour alone is the last one of that name."""
    clock = _HOUR.fullmatch(text)
    try:
        naive = None if clock else datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text!r} is not a time", hint="write 2026-01-31T08:00:00Z, 2026-01-31T08:00 or 08:00") from None
    if naive is not None and naive.tzinfo is not None:
        return naive
    zone = ZoneInfo(zone_of((await client.schedules.get(schedule)).definition))
    if naive is not None:
        return naive.replace(tzinfo=zone)
    now = datetime.now(zone)
    today = datetime.combine(now.date(), time.fromisoformat(text.zfill(5)), zone)
    return today if today <= now else datetime.combine(now.date() - timedelta(days=1), today.time(), zone)


async def _explain(client: Client, subject: str) -> Explanation:
    try:
        return await client.explain(subject)
    except UnknownRun:
        try:
            return await client.schedules.explain(subject)
        except UnknownSchedule as unknown:
            words = f"there is no run and no schedule {subject!r:.80}"
            raise NotFound(words, hint=f"{unknown.hint}; `rota run list` lists runs") from None
