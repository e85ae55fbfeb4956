"""`client.error_groups`: failed runs, grouped by error."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.monitoring.error_groups import (
    MOST_GROUPS,
    ErrorGroup,
    ErrorGroups,
    GroupOrder,
    GroupQuery,
    Place,
    checked_order,
)
from rota.core.runs.options import scope_of
from rota.core.runs.run import Run
from rota.errors import Forbidden, Invalid
from rota.values.instants import instant
from rota.values.scope import Scope, scope_text
from rota.verbs.examples import ERROR_GROUPS
from rota.verbs.pages import Cursor, Limit, cursor_at, place_of
from rota.verbs.verb import verb
from rota.verbs.wire import Instant, Wired

if TYPE_CHECKING:
    from rota.store import Store

_Cursor = tuple[int, Instant, str, Instant]
"""Place of the last group seen, and the end of the time range: all pages are of one range."""


class ErrorGroupsClient:
    """Failed runs grouped by error."""

    def __init__(self, store: Store, scope: Scope | None = None) -> None:
        self._store = store
        self._scope = scope
        self._shown: Callable[[Run], Run] = lambda run: run

    def shown_by(self, shown: Callable[[Run], Run]) -> ErrorGroupsClient:
        """Return a client whose messages come from runs as `shown` returns them: without what a reader may not see."""
        client = copy(self)
        client._shown = shown
        return client

    @verb("GET", "/error-groups", Role.VIEWER, scoped=True, gives=ERROR_GROUPS)
    async def list(  # noqa: PLR0913  # its parameters are those of the question
        self,
        *,
        since: Annotated[datetime | None, Meta(description="Begin of the time range, by default a day earlier")] = None,
        until: Annotated[datetime | None, Meta(description="End of the time range, by default now")] = None,
        job: Annotated[str | None, Meta(description="Only runs of this job")] = None,
        scope: Annotated[Scope | tuple[str, str] | None, Meta(description="Only runs of this scope, `kind/id`")] = None,
        all_jobs: Annotated[bool, Meta(description="Group the same error of several jobs")] = False,
        sort: Annotated[
            str, Wired(GroupOrder), Meta(description="The group seen last first, or the largest first")
        ] = "newest",
        search: Annotated[
            Annotated[str, Meta(max_length=200)] | None,
            Meta(
                description="Only groups with this text in their newest error, as `Type: message`, or in a job's name"
            ),
        ] = None,
        limit: Limit = 50,
        cursor: Cursor | None = None,
    ) -> ErrorGroups:
        """Group the runs that failed, timed out or expired by error fingerprint, and by job unless `all_jobs` is set.

        At most the newest 10 000 of those runs are considered; `truncated` means that there were more. `histogram`
        counts them in 24 equal parts of the time range. A `search` reads the errors of at most 500 groups, and as many
        are compared for `all_jobs`. To retry all runs of a group, filter by `job` and `fingerprint` of each of its
        parts.
        """
        if not 1 <= limit <= MOST_GROUPS:
            raise Invalid(f"limit must be 1 to {MOST_GROUPS}, not {limit}")
        after: Place | None = None
        if cursor is not None:
            *place, until = place_of(cursor, _Cursor)
            after = (place[0], place[1], place[2])
        only_scope = self._visible(None if scope is None else scope_of(scope))
        order = checked_order(sort)
        query = GroupQuery(
            since=since,
            until=until,
            job=job,
            scope=only_scope,
            limit=limit,
            after=after,
            all_jobs=all_jobs,
            order=order,
        )
        found = await self._store.error_groups.groups(query, self._saying(search) if search else None)
        # A run may have been pruned since its failure was read.
        runs = {id: self._shown(run) for id, run in found.newest.items()}
        items = [
            group.said_by(runs[group.last_run_id].error, runs[group.last_run_id].reason)
            for group in found.groups
            if group.last_run_id in runs
        ]
        return ErrorGroups(
            items=items,
            since=instant(found.since),
            until=instant(found.until),
            truncated=found.truncated,
            next_cursor=cursor_at((*found.groups[-1].place(order), instant(found.until))) if found.more else None,
        )

    def _saying(self, text: str) -> Callable[[ErrorGroup, Run], bool]:
        """Return whether a group contains a text, as its reader may see it: a hidden value must not be found."""

        def matches(group: ErrorGroup, newest: Run) -> bool:
            run = self._shown(newest)
            return group.said_by(run.error, run.reason).says(text)

        return matches

    def _visible(self, scope: Scope | None) -> Scope | None:
        """Return the scope to search, limited to the client's own."""
        own_scope = self._scope
        if own_scope is not None and scope not in (None, own_scope):
            raise Forbidden(f"only runs of {scope_text(own_scope)} are visible here")
        return own_scope or scope
