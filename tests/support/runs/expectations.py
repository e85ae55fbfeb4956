"""Helpers for tests of expectations: check them like the watcher, and read what it wrote."""

from typing import Any

import msgspec

from rota.store import Store
from rota.store.databases.database import Tx


async def look(store: Store) -> list[str]:
    """Check expectations; return the changes: `+start_within` is breached now, `-start_within` met again."""
    changes = await store.expectations.watch()
    return [
        *(f"+{breach.what}" for change in changes for breach in change.breached),
        *(f"-{what}" for change in changes for what in change.met),
    ]


async def open_now(store: Store) -> list[tuple[str, str, str]]:
    return [(one.kind, one.subject, breach.what) for one in await store.expectations.list() for breach in one.breaches]


async def noted(store: Store, subject: str) -> list[tuple[str, str]]:
    """(type, what) of its trail, the oldest first."""
    events = await store.events.audit({"subject": subject}, 100, None)
    return [(e.type, e.details["what"]) for e in reversed(events) if e.type in ("breached", "met")]


async def signals(store: Store) -> list[tuple[str, str, str, str, str | None, dict[str, Any]]]:
    """(type, kind, subject, job, schedule, details), in their order."""

    async def body(tx: Tx) -> Any:
        return await tx.fetch_sql("select type, kind, subject, job, schedule, details from rota_signal order by no")

    rows = await store.database.read(body)
    return [(*row[:5], msgspec.json.decode(row[5]) if row[5] else {}) for row in rows]


async def listen(store: Store, job: str) -> None:
    sql = "insert into rota_listener (job, what, subject) values (:job, 'notification', 'test')"
    await store.database.transact(lambda tx: tx.fetch_sql(sql, job=job))
