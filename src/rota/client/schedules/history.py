"""Verbs about past plan times: list, verify, explain and backfill. Part of `client.schedules`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rota.client.schedules import forms
from rota.core.access.roles import Role
from rota.core.ledger.audit import Event
from rota.core.ledger.backfill import Backfill, BackfillOrder, ran_of
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.ledger.occurrences import Occurrence, OccurrencePage, OccurrenceQuery, PagePosition, place_after
from rota.core.ledger.verify import Verification
from rota.core.schedules.recent_runs import Recent, checked_recent
from rota.errors import Invalid
from rota.values.actor import checked_actor
from rota.values.durations import in_micros
from rota.values.instants import instant, micros_at
from rota.verbs import examples
from rota.verbs.bounds import within_bounds
from rota.verbs.pages import Page
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.store import Store

MOST_OCCURRENCES = 10_000
Occurrences = Annotated[int, Meta(ge=1, le=MOST_OCCURRENCES, description="Maximum number of items")]
_DAY = timedelta(days=1)


class HistoryVerbs:
    """Verbs about the history of one schedule, by name. Datetimes must have a time zone."""

    _store: Store
    _lease: timedelta

    @within_bounds()
    async def occurrences(
        self,
        name: str,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        *,
        limit: Occurrences = 100,
        after: PagePosition | None = None,
    ) -> Sequence[Occurrence]:
        """List what happened to each plan time, oldest first; by default over the last day.

        A range of plan times that overlaps the window is returned whole, and so is a plan time of many scopes: they are
        not cut by `limit`, and the first line of each has their `summary`. `after` is where the previous page with the
        same `from_at` and `to_at` ended; `occurrence_page` says where.
        """
        if after is not None and after.from_at is None:
            if from_at is None or to_at is None:
                raise Invalid("after needs from_at and to_at", hint="pass those of the previous page")
            after = PagePosition(after.at, after.told, _zoned(from_at, "from"), _zoned(to_at, "to"))
        return (await self.occurrence_page(name, from_at, to_at, limit=limit, after=after)).occurrences

    @verb(
        "GET",
        "/schedules/{name}/occurrences",
        Role.VIEWER,
        names={"after": "cursor"},
        answer=forms.OCCURRENCE_PAGE,
        gives=examples.OCCURRENCE,
        operation="list_occurrences",
    )
    async def occurrence_page(
        self,
        name: str,
        from_at: Annotated[
            datetime | None, Meta(description="The first plan time; by default a day before `to`")
        ] = None,
        to_at: Annotated[datetime | None, Meta(description="Last plan time; by default now")] = None,
        *,
        limit: Occurrences = 100,
        after: forms.AfterPlace = None,
    ) -> OccurrencePage:
        """List what happened to each plan time, oldest first; by default over the last day.

        A range of plan times that overlaps the window is returned whole. With `after`, `from_at` and `to_at` of the
        first page apply. A page ends where a plan time does: one of more than `limit` scopes is a page of its own, up
        to 10 000 lines. The first line of a plan time of several scopes has their `summary`.
        """
        if after is not None and after.from_at is not None and after.to_at is not None:
            first, last = _micros(after.from_at, "from"), _micros(after.to_at, "to")
        else:
            last = await self._store.now() if to_at is None else _micros(to_at, "to")
            first = last - in_micros(_DAY) if from_at is None else _micros(from_at, "from")
        if first > last:
            raise Invalid("from is after to")
        past, told = (0, 0) if after is None else (_micros(after.at, "after"), after.told)
        query = OccurrenceQuery(first, last, limit, past, told)
        occurrences, more = await self._store.ledger.occurrence_page(name, query, MOST_OCCURRENCES)
        place = place_after(occurrences, after) if more else None
        if place is not None:
            place = PagePosition(place.at, place.told, instant(first), instant(last))
        return OccurrencePage(occurrences, place)

    @verb(
        "GET",
        "/schedules:recent",
        Role.VIEWER,
        names={"names": "name"},
        gives={"news": {"recent": [], "p50_duration_ms": 84, "p95_duration_ms": 1_250}},
        operation="list_recent_runs",
    )
    async def recent(
        self,
        names: Annotated[Sequence[str], Meta(description="Names of schedules")],
        limit: Annotated[int, Meta(description="Number of runs of each")] = 30,
    ) -> Mapping[str, Recent]:
        """Return the last `limit` runs for plan times of each schedule, by name, oldest first.

        For a schedule with several scopes, only ten of them are considered.
        """
        return await self._store.monitoring.recent(names, checked_recent(len(names), limit))

    @verb(
        "GET",
        "/schedules/{name}/events",
        Role.VIEWER,
        page=Page(lambda event: event.seq),
        answer=forms.EVENT,
        gives=examples.EVENT,
        operation="list_schedule_events",
    )
    async def events(self, name: str) -> Sequence[Event]:
        """List what was done to a schedule and by it, oldest first. A deleted schedule keeps its events until its name
        is reused."""
        return await self._store.events.of_schedule(name)

    @verb("GET", "/schedules/{name}/verify", Role.VIEWER)
    async def verify(
        self,
        name: str,
        *,
        thorough: Annotated[bool, Meta(description="Check each run, besides counting")] = True,
    ) -> Verification:
        """Verify that every plan time is accounted for exactly once. `thorough` also checks each run, besides
        counting."""
        return await self._store.ledger.verify(name, thorough=thorough)

    @verb("GET", "/schedules/{name}/explain", Role.VIEWER, gives=examples.EXPLANATION)
    async def explain(
        self,
        name: str,
        at: Annotated[datetime | None, Meta(description="A plan time; by default the newest past one")] = None,
    ) -> Explanation:
        """Explain why a plan time ran or not, or whether it will; by default the newest past one."""
        second = None if at is None else _micros(at, "at") // 1_000_000 * 1_000_000
        return await self._store.ledger.explain(name, second, in_micros(self._lease))

    @verb(
        "POST",
        "/schedules/{name}/backfill",
        Role.OPERATOR,
        takes={"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "dry_run": True},
    )
    async def backfill(
        self,
        name: str,
        from_at: Annotated[datetime, Meta(description="The first plan time")],
        to_at: Annotated[datetime, Meta(description="The last plan time")],
        *,
        ran: Annotated[
            str, Meta(description="Also plan times whose run did not succeed (`failed`), or all that have one (`all`)")
        ] = "none",
        concurrency: Annotated[int, Meta(ge=1, le=10_000, description="Runs at a time")] = 1,
        dry_run: Annotated[bool, Meta(description="Only return what would be created")] = False,
        actor: str | None = None,
    ) -> Backfill:
        """Create runs for past plan times between `from_at` and `to_at` that have none, `concurrency` of them at a
        time.

        `ran` also includes plan times whose run did not succeed (`failed`), or all that have one (`all`).
        """
        again = ran_of(ran)
        if not isinstance(concurrency, int) or isinstance(concurrency, bool):
            raise Invalid(f"concurrency must be a whole number, not {concurrency!r}")
        order = BackfillOrder(
            _micros(from_at, "from"), _micros(to_at, "to"), again, concurrency, dry_run, checked_actor(actor)
        )
        if order.from_at > order.to_at:
            raise Invalid("from is after to")
        if order.to_at > await self._store.now():
            raise Invalid("to is in the future", hint="future plan times are planned automatically")
        return await self._store.ledger.backfill(name, order)


def _micros(at: datetime, name: str) -> int:
    return micros_at(_zoned(at, name))


def _zoned(at: datetime, name: str) -> datetime:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise Invalid(f"{name} must be a datetime with a zone, not {at!r}", hint="datetime.now(UTC)")
    return at
