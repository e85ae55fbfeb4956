"""Runs found by a filter, for those who do not see all of them: what is hidden must not be told by what is found."""

from __future__ import annotations

from starlette.requests import Request

from rota.api.disclosure import all_shown
from rota.api.identity import identity_of
from rota.client import MOST_LISTED, Client
from rota.core.access import Role
from rota.core.bulking import Counted
from rota.core.model import Run, RunFilter
from rota.core.searching import RunPage, tells

_MOST_PAGES = 8


async def page_seen(request: Request, client: Client, wanted: RunFilter, limit: int, before: str | None) -> RunPage:
    """Runs as they are shown. One that matches only by what is not shown of it is left out, and leaves no trace in
    where the next page begins: else it could be tried out what that is."""
    if not _may_tell(request, wanted):
        found = await client.page(wanted, limit=limit, before=before)
        return RunPage(all_shown(request, found.runs), found.next)
    seen, following = await _seen(request, client, wanted, limit, before)
    more = len(seen) > limit or (len(seen) == limit and following is not None)
    return RunPage(seen[:limit], seen[limit - 1].id if more else following)


async def count_seen(request: Request, client: Client, wanted: RunFilter, most: int, within: str) -> Counted:
    if not _may_tell(request, wanted):
        return await client.count(wanted, most=most, within=within)
    seen, following = await _seen(request, client, wanted, most, None)
    return Counted(min(len(seen), most), exact=len(seen) <= most and following is None)


def _may_tell(request: Request, wanted: RunFilter) -> bool:
    return not identity_of(request).may(Role.ADMIN) and (wanted.error is not None or bool(wanted.payload))


async def _seen(
    request: Request, client: Client, wanted: RunFilter, enough: int, before: str | None
) -> tuple[list[Run], str | None]:
    seen: list[Run] = []
    for _ in range(_MOST_PAGES):
        found = await client.page(wanted, limit=MOST_LISTED, before=before)
        seen += [run for run in all_shown(request, found.runs) if tells(run, wanted)]
        before = found.next
        if before is None or len(seen) > enough:
            break
    return seen, before
