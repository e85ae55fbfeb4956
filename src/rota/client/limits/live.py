"""Verbs about live limits of jobs and queues; part of `Client`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from rota.core.access.roles import Role
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Queue
from rota.core.jobs.status import JobStatus
from rota.core.limits.live import LimitedThing, live_quota
from rota.core.limits.quotas import Quota, RateOption, rate_text
from rota.errors import Invalid, UnknownLimit
from rota.registry.jobs import Registry
from rota.values.actor import checked_actor
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.names import checked_name
from rota.verbs.examples import JOB_STATUS, LIVE_LIMIT, QUEUE
from rota.verbs.verb import verb
from rota.verbs.wire import Wired

if TYPE_CHECKING:
    from rota.store import Store

AtOnce = Annotated[int, Meta(ge=0, le=1_000_000_000, description="Runs at a time")]
Rate = Annotated[
    RateOption,
    Wired(str | None, rate_text),
    Meta(description='Attempts that may start within a time: `"5/s"`, `"1000/1h"`'),
]
Lasts = Annotated[Duration | None, Meta(description="For how long; without it, until it is cleared")]
Why = Annotated[str, Meta(max_length=1_000, description="Why, for the audit log")] | None
_TAKES = {"rate": "5/s", "for": "2h", "reason": "after the outage"}


class LiveLimitVerbs:
    """Verbs about the live limit of a job or a queue, which stands beside what code declares: the stricter decides."""

    store: Store
    registry: Registry

    if TYPE_CHECKING:  # they are among the verbs about jobs

        def _declared(self) -> dict[str, JobDefinition]: ...

    @verb(
        "PUT",
        "/jobs/{name}/limit",
        Role.OPERATOR,
        repeatable=True,
        names={"lasts": "for"},
        takes=_TAKES,
        gives={**JOB_STATUS, "live_limit": LIVE_LIMIT},
    )
    async def limit_job(
        self,
        name: str,
        *,
        max_concurrency: AtOnce | None = None,
        rate: Rate = None,
        lasts: Lasts = None,
        reason: Why = None,
        actor: str | None = None,
    ) -> JobStatus:
        """Limit how many runs of a job run at a time, or start within a time, from now on. Replace its previous live
        limit. Running runs continue.

        It also applies to runs that already wait. What code declares stays: the stricter limit decides.
        """
        limit, micros = _limit(max_concurrency, rate, lasts, reason, actor)
        limits, declared = self.store.live_limits, self.registry.newest
        return await self.store.job_views.limit_job(limits, name, limit, micros, declared=declared)

    @verb("DELETE", "/jobs/{name}/limit", Role.OPERATOR)
    async def clear_job_limit(self, name: str, *, actor: str | None = None) -> None:
        """Clear the live limit of a job. What code declares applies again, alone."""
        known = self.store.job_views.known(name, self.registry.newest)
        if not await self.store.live_limits.clear(LimitedThing.JOB, name, checked_actor(actor), known):
            raise UnknownLimit("job", name)

    @verb(
        "PUT",
        "/queues/{name}/limit",
        Role.OPERATOR,
        repeatable=True,
        names={"queue": "name", "lasts": "for"},
        takes=_TAKES,
        gives={**QUEUE, "live_limit": LIVE_LIMIT},
    )
    async def limit_queue(
        self,
        queue: str,
        *,
        max_concurrency: AtOnce | None = None,
        rate: Rate = None,
        lasts: Lasts = None,
        reason: Why = None,
        force: Annotated[bool, Meta(description="Also one that no job names, and that has no runs")] = False,
        actor: str | None = None,
    ) -> Queue:
        """Limit how many runs of a queue run at a time, or start within a time, from now on, over all its jobs. Replace
        its previous live limit. Running runs continue.

        Raise `UnknownQueue` for one that no job names and that has no runs, unless `force` is given.
        """
        limit, micros = _limit(max_concurrency, rate, lasts, reason, actor)
        name = checked_name(queue, "queue")
        declared = None if force else self._declared()
        return await self.store.job_views.limit_queue(self.store.live_limits, name, limit, micros, declared)

    @verb("DELETE", "/queues/{name}/limit", Role.OPERATOR, names={"queue": "name"})
    async def clear_queue_limit(self, queue: str, *, actor: str | None = None) -> None:
        """Clear the live limit of a queue."""
        name = checked_name(queue, "queue")
        if not await self.store.live_limits.clear(LimitedThing.QUEUE, name, checked_actor(actor)):
            raise UnknownLimit("queue", name)


def _limit(
    max_concurrency: int | None, rate: RateOption, lasts: Duration | None, reason: str | None, actor: str | None
) -> tuple[Quota, int | None]:
    """Return the limit, and for how many microseconds it lasts."""
    quota = msgspec.structs.replace(live_quota(max_concurrency, rate), reason=reason, by=checked_actor(actor))
    if lasts is None:
        return quota, None
    span = parse_duration(lasts, "for")
    if not span:
        raise Invalid("for must be longer than zero", hint="leave it out for a limit that lasts until it is cleared")
    return quota, in_micros(span)
