"""The newest of what became of a schedule's plan times; the client tells it from the oldest on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from rota.client import Client
from rota.core.occurrences import Occurrence
from rota.core.states import RunState
from rota.errors import UnknownRun

LONGEST_PAGE = 10_000
_DAY, _SHORTEST, _NEXT = timedelta(days=1), timedelta(seconds=1), timedelta(microseconds=1)


class Recalled(msgspec.Struct, frozen=True):
    """In the order of plan times; `truncated` if there are older ones in the time that was asked for."""

    items: Sequence[Occurrence]
    truncated: bool


async def recall(client: Client, name: str, from_at: datetime | None, to_at: datetime | None, limit: int) -> Recalled:
    end = to_at or await client.time()
    found = await _Past(client, name, limit).newest(from_at or end - _DAY, end, limit + 1)
    kept = found[-limit:]
    return Recalled([await _as_it_went(client, one, found) for one in kept], len(found) > limit)


class _Past(msgspec.Struct, frozen=True):
    client: Client
    name: str
    limit: int

    async def newest(self, from_at: datetime, to_at: datetime, wanted: int) -> list[Occurrence]:
        """A time with more in it than a page is halved: the later half first, of the earlier what is still wanted."""
        page = min(self.limit * 2 + 1, LONGEST_PAGE)
        found = list(await self.client.schedules.occurrences(self.name, from_at, to_at, limit=page))
        if len(found) < page or to_at - from_at <= _SHORTEST:
            return found[-wanted:]
        middle = from_at + (to_at - from_at) / 2
        late = await self.newest(middle, to_at, wanted)
        if len(late) >= wanted:
            return late
        early = await self.newest(from_at, middle - _NEXT, wanted)
        whole = [one for one in early if one not in late] + late  # ranges that reach into both are told twice
        return sorted(whole, key=_began)[-wanted:]


def _began(one: Occurrence) -> datetime:
    at = one.plan_time or one.from_at
    assert at is not None
    return at


async def _as_it_went(client: Client, one: Occurrence, known: Sequence[Occurrence]) -> Occurrence:
    """Plan times that were coalesced into a run which was skipped were skipped with it, and for its reason."""
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
