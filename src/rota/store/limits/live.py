"""Live limits of jobs and queues: set, cleared, and ended when their time is over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from rota.core.limits.live import (
    NO_KIND,
    LimitedThing,
    LiveLimit,
    live_limit,
    place_of,
    same_limit,
    thing_of,
    words_of,
)
from rota.core.limits.quotas import Quota
from rota.store.databases.database import Tx, Work
from rota.store.ledger import audit
from rota.store.limits import quotas
from rota.store.limits.quotas import QuotaStore

T = TypeVar("T")
Limits = dict[tuple[LimitedThing, str], LiveLimit]

EXPIRY = "expiry"
"""Actor of the end of a live limit whose time is over."""


async def live_limits(tx: Tx) -> Limits:
    """Read the live limits of all jobs and queues. They are few: people set them."""
    stored = {thing_of(id): limit_in(text, now) for id, text, now in await tx.fetch("live_limits")}
    return {thing: limit for thing, limit in stored.items() if limit is not None}


def limit_in(text: str | None, now: int) -> LiveLimit | None:
    """Return a live limit from its row; None if there is none, or its time is over."""
    quota = None if text is None else quotas.decoded(text)
    return None if quota is None or _is_over(quota, now) else live_limit(quota)


def _is_over(quota: Quota, now: int) -> bool:
    return quota.until is not None and quota.until <= now


class LiveLimitStore:
    def __init__(self, quota_store: QuotaStore) -> None:
        self._quotas = quota_store

    async def update(
        self,
        thing: LimitedThing,
        name: str,
        limit: Quota,
        lasts: int | None,
        check: Work[None] | None = None,
        read: Work[T] | None = None,
    ) -> tuple[LiveLimit, T | None]:
        """Set a live limit, replacing the previous one, and return it with what `read` finds then. It applies to all
        runs that wait when this returns, and to all that come; what runs, runs on, and counts.

        `lasts`: for how many microseconds. `check` raises if there is no such job or queue.
        """
        place = place_of(thing, name)

        async def body(tx: Tx) -> tuple[LiveLimit, T | None]:
            if check is not None:
                await check(tx)
            answer = await _set(tx, thing, name, limit, lasts)
            return answer, None if read is None else await read(tx)

        return await self._quotas.change(NO_KIND, place.id, body)

    async def clear(self, thing: LimitedThing, name: str, actor: str | None, check: Work[None] | None = None) -> bool:
        """End a live limit; return whether there was one."""
        place = place_of(thing, name)

        async def body(tx: Tx) -> bool:
            if check is not None:
                await check(tx)
            stored, _ = await quotas.lock(tx, NO_KIND, place.id)
            if stored is None:
                return False
            await _drop(tx, place.id, stored, actor)
            return True

        return await self._quotas.change(NO_KIND, place.id, body)

    async def end_expired(self, limits: Mapping[str, Quota]) -> None:
        """Clear those of these live limits whose time is over."""
        timed = {id: limit for id, limit in limits.items() if limit.until is not None}
        if not timed:
            return
        now = await self._quotas.now()
        # Only those: a change of a limit, even of nothing, lets all its runs be looked at again.
        for id in [id for id, limit in timed.items() if _is_over(limit, now)]:

            async def body(tx: Tx, id: str = id) -> None:
                ((now,),) = await tx.fetch("now")
                # Looked at again under the lock: somebody may have set another one.
                stored, _ = await quotas.lock(tx, NO_KIND, id)
                if stored is not None and _is_over(stored, int(now)):
                    await _drop(tx, id, stored, EXPIRY)

            await self._quotas.change(NO_KIND, id, body)


async def _set(tx: Tx, thing: LimitedThing, name: str, limit: Quota, lasts: int | None) -> LiveLimit:
    id = place_of(thing, name).id
    stored, _ = await quotas.lock(tx, NO_KIND, id, reserve=True)
    ((now,),) = await tx.fetch("now")
    until = None if lasts is None else int(now) + lasts
    new = msgspec.structs.replace(limit, since=int(now), until=until)
    if stored is not None and not _is_over(stored, int(now)) and same_limit(stored, new):
        return live_limit(stored)
    await quotas.put(tx, NO_KIND, id, new, limit.by or quotas.NOBODY)
    facts = {"limit": words_of(new), "until_at": until, "reason": limit.reason}
    await audit.note(tx, thing, name, "limited", limit.by, facts)
    return live_limit(new)


async def drop_of_job(tx: Tx, name: str, actor: str | None) -> None:
    """End the live limit of a job that is deleted: the next one of its name must not be born with it."""
    place = place_of(LimitedThing.JOB, name)
    stored, _ = await quotas.lock(tx, NO_KIND, place.id)
    if stored is not None:
        await _drop(tx, place.id, stored, actor)


async def _drop(tx: Tx, id: str, stored: Quota, actor: str | None) -> None:
    await tx.fetch("drop_quota", kind=NO_KIND, id=id)
    thing, name = thing_of(id)
    await audit.note(tx, thing, name, "unlimited", actor, {"limit": words_of(stored)})
