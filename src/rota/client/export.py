"""Everything of a kind, page after page, the newest first: what is exported, over HTTP and by the command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from rota.client.client import MOST_LISTED, Client
from rota.core.ledger.audit import Event
from rota.core.runs.run import Attempt, Run, RunFilter
from rota.errors import UnknownRun


async def all_runs(client: Client, wanted: RunFilter) -> AsyncIterator[Sequence[Run]]:
    before: str | None = None
    while True:
        page = await client.page(wanted, limit=MOST_LISTED, before=before)
        yield page.runs
        if (before := page.next) is None:
            return


async def attempts_of(client: Client, run: Run) -> Sequence[Attempt]:
    """None of a run that was pruned since it was found."""
    try:
        return await client.attempts(run.id)
    except UnknownRun:
        return ()


async def all_events(client: Client) -> AsyncIterator[Sequence[Event]]:
    before: int | None = None
    while page := await client.audit(limit=MOST_LISTED, before=before):
        yield page
        before = page[-1].seq
