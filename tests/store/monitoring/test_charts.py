"""Charts on both databases: the rows of a period, found by their key."""

from rota.client.monitoring.monitoring import MonitoringClient
from rota.config import Config
from rota.core.monitoring.counters import HOUR, MINUTE, Counted
from rota.store import Store
from rota.values.instants import instant
from tests.support.clock import ManualClock
from tests.support.databases.query_plans import explained

ONE, TWO = Counted(runs={"succeeded": 1}), Counted(runs={"succeeded": 2})


async def test_minutes_of_all_processes(store: Store, clock: ManualClock) -> None:
    minute = clock.micros() // MINUTE * MINUTE
    await store.monitoring.record("a", {(60, minute - MINUTE): ONE, (3_600, minute // HOUR * HOUR): TWO})
    await store.monitoring.record("b", {(60, minute - MINUTE): TWO, (60, minute - HOUR): ONE})
    await store.monitoring.record("b", {(60, minute - MINUTE): TWO})
    found = await MonitoringClient(store, Config()).series(instant(minute - 2 * HOUR), step="2m")
    told = {bucket.at: bucket.runs["succeeded"] for bucket in found.buckets if bucket.runs}
    assert sorted(told.values()) == [1, 3]
    assert all(bucket.queued is None for bucket in found.buckets)


async def test_hours_where_steps_are_hours(store: Store, clock: ManualClock) -> None:
    hour = clock.micros() // HOUR * HOUR
    await store.monitoring.record("a", {(60, hour): ONE, (3_600, hour): TWO, (3_600, hour - HOUR): ONE})
    found = await MonitoringClient(store, Config()).series(step="1h")
    assert [bucket.runs for bucket in found.buckets[-2:]] == [{"succeeded": 1}, {"succeeded": 2}]
    assert len(found.buckets) == 25


async def test_how_full_it_was(store: Store, clock: ManualClock) -> None:
    assert not (await store.monitoring.measure()).is_done
    assert (await store.monitoring.measure()).is_done
    found = await MonitoringClient(store, Config()).series()
    assert [bucket.queued for bucket in found.buckets][-1] == 0


async def test_rows_are_found_by_their_key(store: Store) -> None:
    told = await explained(store, "counted_between", span=60, first=0, last=9, most=5)
    assert "SCAN" not in told
    assert "Seq Scan" not in told
    old = await explained(store, "old_counts", minutes=1, hours=2, limit=5)
    assert "Seq Scan on rota_count" not in old
    assert "SCAN rota_count" not in old
