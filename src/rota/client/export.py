"""Export of runs and events, page by page, newest first; shared by the API and the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from rota.client.client import MOST_LISTED, Client
from rota.core.ledger.audit import Event
from rota.core.runs.run import Attempt, Run, RunFilter
from rota.errors import UnknownRun


async def all_runs(client: Client, run_filter: RunFilter) -> AsyncIterator[Sequence[Run]]:
    """Yield pages of all matching runs."""
    before: str | None = None
    while True:
        page = await client.page(run_filter, limit=MOST_LISTED, before=before)
        yield page.runs
        if (before := page.next) is None:
            return


async def attempts_of(client: Client, run: Run) -> Sequence[Attempt]:
    """Return the attempts of a run, or nothing if it has been pruned since it was found."""
    try:
        return await client.attempts(run.id)
    except UnknownRun:
        return ()


async def all_events(client: Client) -> AsyncIterator[Sequence[Event]]:
    """Yield pages of the whole audit log."""
    before: int | None = None
    while page := await client.audit(limit=MOST_LISTED, before=before):
        yield page
        before = page[-1].seq
