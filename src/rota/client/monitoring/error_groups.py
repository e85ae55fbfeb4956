"""`client.error_groups`: failed runs, grouped by error."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rota.core.monitoring.error_groups import MOST_GROUPS, ErrorGroups, checked_window, grouped
from rota.core.runs.options import scope_of
from rota.errors import Invalid
from rota.values.instants import instant
from rota.values.scope import Scope

if TYPE_CHECKING:
    from rota.store import Store


class ErrorGroupsClient:
    """Failed runs grouped by error."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        job: str | None = None,
        scope: Scope | tuple[str, str] | None = None,
        limit: int = 50,
    ) -> ErrorGroups:
        """Group the runs that failed, timed out or expired by job and error fingerprint, most recent group first.

        Covers the last day unless `since` and `until` are given, and at most the newest 10 000 of those runs.
        """
        if not 1 <= limit <= MOST_GROUPS:
            raise Invalid(f"limit must be 1 to {MOST_GROUPS}, not {limit}")
        begin, end = checked_window(since, until, instant(await self._store.now()))
        only_scope = None if scope is None else scope_of(scope)
        errors, truncated = await self._store.error_groups.between(begin, end, job, only_scope)
        groups = grouped(errors, begin, end)
        shown = groups[:limit]
        newest = {run.id: run for run in await self._store.searching.runs([group.last_run_id for group in shown])}
        items = [
            group.said_by(newest[group.last_run_id].error, newest[group.last_run_id].reason)
            for group in shown
            if group.last_run_id in newest
        ]
        incomplete = truncated or len(groups) > limit
        return ErrorGroups(items=items, since=instant(begin), until=instant(end), truncated=incomplete)
