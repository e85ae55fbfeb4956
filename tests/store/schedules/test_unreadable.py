"""A schedule that a newer rota has written, and this one cannot read: all others are shown as before."""

from datetime import timedelta

import pytest

from rota.client.monitoring.monitoring import MonitoringClient
from rota.config import Config
from rota.core.calendar.triggers import cron
from rota.core.jobs.job import JobDefinition
from rota.store import Store
from rota.store.databases.database import Tx
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.schedules.schedules import make_schedule

ODD = JobDefinition(name="odd")
NEWER = {
    "shape": ('\'{"job": "odd"}\'', False),
    "zone": ("replace(definition, 'Berlin', 'Nowhere')", True),
    "rule": ("replace(definition, '* * * *', '99 * * *')", True),
}


async def written_by_a_newer_one(store: Store, what: str) -> None:
    """Make two schedules unreadable; `good`, between them, stays as it was."""
    for name in ("a-odd", "good", "z-odd"):
        await make_schedule(store, name, cron("* * * * *", tz="Europe/Berlin"), job=ODD)

    async def body(tx: Tx) -> None:
        await tx.fetch_sql(
            f"update rota_schedule set revision = revision + 1, definition = {NEWER[what][0]} where name like '%odd'"
        )

    await store.database.transact(body)


@pytest.mark.parametrize("what", NEWER)
async def test_the_others_are_shown(store: Store, clock: ManualClock, what: str) -> None:
    await written_by_a_newer_one(store, what)
    monitoring = MonitoringClient(store, Config())
    assert "good" in [fire.schedule for fire in (await monitoring.overview()).next_fires]
    until = instant(clock.micros()) + timedelta(minutes=5)
    coming = {lane.name: len(lane.coming) for lane in (await monitoring.timeline(None, until, by="schedule")).lanes}
    assert coming["good"] == 5
    assert coming.get("a-odd", 0) == (1 if NEWER[what][1] else 0), "the next one is known without its rule"
    assert "good" in await store.monitoring.recent(["a-odd", "good", "z-odd"], 5)


async def test_they_are_left_out_of_lists_page_by_page(store: Store) -> None:
    await written_by_a_newer_one(store, "shape")
    assert [one.name for one in await store.schedules.list(limit=1)] == ["good"]
    assert [one.name for one in await store.schedules.list()] == ["good"]
    assert [one.name for one in await store.schedules.list(state="active", limit=1)] == ["good"]
    assert await store.schedules.list(limit=1, after="good") == []
