"""Verbs about past plan times, over HTTP; part of `client.schedules`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rota.core.calendar.notation import written_instant
from rota.core.ledger.audit import Event
from rota.core.ledger.backfill import Backfill, ran_of
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.ledger.occurrences import Occurrence, PagePosition, written_place
from rota.core.ledger.verify import Verification
from rota.core.monitoring.recent_runs import Recent, checked_recent
from rota.errors import Invalid, UnknownSchedule
from rota.remote.decode import event_of, items, read
from rota.remote.encode import cursor_of_name
from rota.remote.transport import Transport, path_of

_AT_ONCE = 8


class RemoteHistory:
    """Verbs about the history of one schedule, by name. Datetimes must have a time zone."""

    _transport: Transport

    async def _get_part(self, name: str, verb: str, **query: Any) -> bytes:
        return (await self._transport.ask("GET", path_of("schedules", name, verb), query)).body

    async def occurrences(
        self,
        name: str,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        *,
        limit: int = 100,
        after: PagePosition | None = None,
    ) -> Sequence[Occurrence]:
        """List what happened to each plan time, oldest first; by default over the last day.

        A range of plan times that overlaps the window is returned whole. `after` is where the previous page with the
        same `from_at` and `to_at` ended.
        """
        query: dict[str, Any] = {"from": _maybe(from_at, "from"), "to": _maybe(to_at, "to"), "limit": limit}
        if after is not None:
            if from_at is None or to_at is None:
                raise Invalid("after needs from_at and to_at", hint="pass those of the previous page")
            query["cursor"] = cursor_of_name(written_place(from_at, to_at, after))
        return items(await self._get_part(name, "occurrences", **query), Occurrence)

    async def recent(self, names: Sequence[str], limit: int = 30) -> Mapping[str, Recent]:
        """Return the last `limit` runs for plan times of each schedule, by name, oldest first.

        For a schedule with several scopes, only ten of them are considered.
        """
        checked_recent(len(names), limit)
        answers: list[Recent | None] = []
        for start in range(0, len(names), _AT_ONCE):
            requests = [self._recent(name, limit) for name in names[start : start + _AT_ONCE]]
            answers += await asyncio.gather(*requests)
        return {name: recent for name, recent in zip(names, answers, strict=True) if recent is not None}

    async def _recent(self, name: str, limit: int) -> Recent | None:
        try:
            return read((await self._transport.ask("GET", path_of("schedules", name), {"recent": limit})).body, Recent)
        except UnknownSchedule:
            return None

    async def events(self, name: str) -> Sequence[Event]:
        """List what was done to a schedule and by it, oldest first. A deleted schedule keeps its events until its name
        is reused."""
        return [event_of(item) for item in items(await self._get_part(name, "events"), dict[str, Any])]

    async def verify(self, name: str, *, thorough: bool = True) -> Verification:
        """Verify that every plan time is accounted for exactly once. `thorough` also checks each run, besides
        counting."""
        return read(await self._get_part(name, "verify", thorough=thorough), Verification)

    async def explain(self, name: str, at: datetime | None = None) -> Explanation:
        """Explain why a plan time ran or not, or whether it will; by default the newest past one."""
        return read(await self._get_part(name, "explain", at=_maybe(at, "at")), Explanation)

    async def backfill(
        self,
        name: str,
        from_at: datetime,
        to_at: datetime,
        *,
        ran: str = "none",
        concurrency: int = 1,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> Backfill:
        """Create runs for past plan times between `from_at` and `to_at` that have none, `concurrency` of them at a
        time.

        `ran` also includes plan times whose run did not succeed (`failed`), or all that have one (`all`).
        """
        body = {
            "from": _instant(from_at, "from"),
            "to": _instant(to_at, "to"),
            "ran": ran_of(ran).value,
            "concurrency": concurrency,
            "dry_run": dry_run,
        }
        return read(
            (await self._transport.ask("POST", path_of("schedules", name, "backfill"), body=body)).body, Backfill
        )


def _instant(at: datetime, name: str) -> str:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise Invalid(f"{name} must be a datetime with a zone, not {at!r}")
    return written_instant(at)


def _maybe(at: datetime | None, name: str) -> str | None:
    return None if at is None else _instant(at, name)
