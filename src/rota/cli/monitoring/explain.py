"""`rota explain`: why a plan time ran or not, or why a run is in its state."""

from __future__ import annotations

from datetime import datetime

import click

from rota.cli.connect import ask
from rota.cli.options import examples, instant_of, shared
from rota.cli.terminal.format import one_field, visible
from rota.cli.terminal.output import emit, on_terminal, print_json
from rota.client.client import Client
from rota.core.ledger.explain_plan_time import Explanation
from rota.errors import NotFound, UnknownRun, UnknownSchedule


@click.command(
    epilog=examples(
        "rota explain news                               why the newest plan time ran or did not",
        "rota explain news --at 2026-01-31T09:00:00Z     why this plan time ran or did not",
        "rota explain b3e52e11                           why this run is in its state",
    )
)
@click.argument("subject", metavar="SCHEDULE | RUN")
@click.option("--at", type=instant_of, metavar="TIME", help="Plan time of the schedule.  [default: the newest]")
@shared
def explain(subject: str, at: datetime | None, database: str | None, as_json: bool) -> None:
    """Explain a run's state, or why a plan time ran or did not."""

    async def question(client: Client) -> Explanation:
        return await (client.schedules.explain(subject, at) if at is not None else _explain(client, subject))

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


async def _explain(client: Client, subject: str) -> Explanation:
    try:
        return await client.explain(subject)
    except UnknownRun:
        try:
            return await client.schedules.explain(subject)
        except UnknownSchedule as unknown:
            words = f"there is no run and no schedule {subject!r:.80}"
            raise NotFound(words, hint=f"{unknown.hint}; `rota run list` lists runs") from None
