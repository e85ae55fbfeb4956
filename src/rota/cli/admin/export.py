"""`rota export`: print all runs, attempts or events as JSON lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import click

from rota.cli.connect import ask
from rota.cli.options import examples, streaming
from rota.cli.terminal.output import emit, json_text, plain_value
from rota.cli.verbs.run_filter import filter_of, filters
from rota.client.client import Client
from rota.client.export import all_events, all_runs, attempts_of
from rota.core.runs.run import RunFilter
from rota.errors import Invalid

_KINDS = ("runs", "attempts", "events")


@click.command(
    epilog=examples(
        "rota export runs > runs.ndjson",
        "rota export runs --job crawl --state failed | jq -r .error.message",
        "rota export attempts --created-after 2026-01-31T00:00:00Z | gzip > attempts.ndjson.gz",
        "rota export events --database postgresql://rota@db/rota",
    )
)
@click.argument("kind", type=click.Choice(_KINDS), metavar=f"[{'|'.join(_KINDS)}]")
@filters
@streaming
def export(kind: str, database: str | None, as_json: bool, **options: Any) -> None:
    """Print all runs, attempts or events as JSON lines.

    The newest come first. Filters select runs, or the runs whose attempts are printed, each with its `run_id`. Events
    are the whole audit, and cannot be filtered. The output is JSON with or without --json.
    """
    run_filter = filter_of(options)
    if kind == "events" and run_filter != RunFilter():
        raise Invalid("filters select runs, and do not apply to events", hint="`rota audit` has filters for events")

    async def command(client: Client) -> None:
        async for documents in _pages(client, kind, run_filter):
            if documents and not emit("\n".join(map(json_text, documents))):
                return

    ask(database, command)


def _pages(client: Client, kind: str, run_filter: RunFilter) -> AsyncIterator[Sequence[object]]:
    if kind == "events":
        return all_events(client)
    return all_runs(client, run_filter) if kind == "runs" else _attempts(client, run_filter)


async def _attempts(client: Client, run_filter: RunFilter) -> AsyncIterator[Sequence[object]]:
    async for page in all_runs(client, run_filter):
        for run in page:
            yield [{"run_id": run.id, **plain_value(attempt)} for attempt in await attempts_of(client, run)]
