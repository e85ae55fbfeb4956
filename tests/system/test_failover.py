"""Test failovers and restores: no fence is given twice, whatever the new database has lost."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rota.core.runs.claim import Claim
from rota.core.runs.run import Run
from rota.core.states import FENCES, Outcome, RunState
from rota.errors import Unavailable
from rota.store import Store, open_database, open_store
from tests.support.databases.postgres import PostgresCluster, PostgresStandby
from tests.support.runs.runs import claim, finish, put, state_of, tell
from tests.system.site import LEASE, Site, migrate, opened

Pair = tuple[PostgresCluster, PostgresStandby]


@pytest.fixture
def pair(own_postgres_cluster: PostgresCluster) -> Iterator[Pair]:
    with PostgresStandby(own_postgres_cluster) as standby:
        yield own_postgres_cluster, standby


def url_of_both(pair: Pair, url: str) -> str:
    """The URL that everybody uses: whichever of the two can be written to."""
    hosts = ",".join(f"127.0.0.1:{cluster.port}" for cluster in pair)
    return f"postgresql://postgres@{hosts}{urlsplit(url).path}?target_session_attrs=read-write"


async def test_a_claim_that_a_failover_lost_is_given_under_another_fence(pair: Pair) -> None:
    """The old holder's report is refused, although the run is leased under the same attempt number."""
    primary, standby = pair
    url = url_of_both(pair, primary.create_database())
    await migrate(url)
    before = await open_store(url)
    run_id, kept_id = await put(before), await put(before)
    (kept,) = await claim(before, 1)
    await asyncio.to_thread(standby.wait_for_replay)
    await asyncio.to_thread(standby.stop)  # nothing arrives from here on
    (lost,) = await claim(before, 1)
    assert (kept.run_id, lost.run_id) == (run_id, kept_id)
    await asyncio.to_thread(primary.kill9)
    await asyncio.to_thread(standby.start)
    await asyncio.to_thread(standby.promote)
    assert await state_of(before, lost.run_id) is RunState.QUEUED, "the claim is lost"
    (again,) = await claim(before, 1)
    assert again.run_id == lost.run_id
    assert again.attempt == lost.attempt
    assert again.fence >= FENCES
    assert not await tell(before, lost, Outcome.SUCCEEDED)
    await finish(before, again)
    await finish(before, kept)  # a lease that arrived goes on
    await before.close()


@pytest.mark.parametrize("stop", ["kill9", "immediate"])
async def test_workers_go_on_after_a_failover_under_load(pair: Pair, stop: str, tmp_path: Path) -> None:
    primary, standby = pair
    url = url_of_both(pair, primary.create_database())
    async with opened(url, tmp_path) as site:
        for name in ("first", "second"):
            site.worker(name)
        runs = await site.enqueue_many(150, "nap", seconds=[0.05])
        await _began(site, 30)
        await asyncio.to_thread(primary.kill9 if stop == "kill9" else lambda: primary.stop("immediate"))
        await asyncio.to_thread(standby.promote)
        known = {run.id for run in await _all_runs(site)}
        await site.all_succeed([run for run in runs if run in known])
        later = await site.enqueue_many(20, "nap", seconds=[0.01])
        await site.all_succeed(later)
        await asyncio.sleep(LEASE)
        begun = [(entry.run_id, entry.fence) for entry in site.ledger.entries("begin")]
        assert len(begun) == len(set(begun)), "a fence was given twice"
        assert all(fence >= FENCES for run_id, fence in begun if run_id in later)


async def test_a_synchronous_standby_loses_nothing(pair: Pair, tmp_path: Path) -> None:
    primary, standby = pair
    primary._execute("alter system set synchronous_standby_names = '*'")
    primary._execute("select pg_reload_conf()")
    url = url_of_both(pair, primary.create_database())
    async with opened(url, tmp_path) as site:
        site.worker()
        runs = await site.enqueue_many(100, "nap", seconds=[0.02])
        await _began(site, 20)
        await asyncio.to_thread(primary.kill9)
        await asyncio.to_thread(standby.promote)
        standby._execute("alter system reset synchronous_standby_names")
        standby._execute("select pg_reload_conf()")
        await site.all_succeed(runs)
        await site.agree(runs)


async def test_a_standby_is_not_written_to(pair: Pair) -> None:
    primary, standby = pair
    url = primary.create_database()
    await migrate(url)
    await asyncio.to_thread(standby.wait_for_replay)
    alone = Store(open_database(url.replace(str(primary.port), str(standby.port))))
    with pytest.raises(Unavailable, match="standby"):
        await alone.now()
    await alone.close()


@pytest.mark.parametrize("reopened", [False, True])
async def test_a_restored_file_is_a_new_epoch(tmp_path: Path, *, reopened: bool) -> None:
    """Also if the process that created the file was the only one that used it."""
    file, backup = tmp_path / "new.db", tmp_path / "backup.db"
    url = f"sqlite:///{file}"
    store = await open_store(url)
    run_id = await put(store)
    if reopened:
        await store.close()
        store = await open_store(url)
    await store.close()
    shutil.copy(file, backup)
    store = await open_store(url)
    (lost,) = await claim(store)
    assert lost.fence == 1
    await store.close()
    backup.replace(file)
    restored = await open_store(url)
    (again,) = await claim(restored)
    assert (again.run_id, again.attempt) == (run_id, 1)
    assert again.fence >= FENCES
    assert not await tell(restored, lost, Outcome.SUCCEEDED)
    await finish(restored, again)
    await restored.close()


async def test_a_file_restored_twice_gives_no_fence_twice(tmp_path: Path) -> None:
    """The first restore's epoch, and all claims in it, are lost with the second."""
    file, backup = tmp_path / "new.db", tmp_path / "backup.db"
    url = f"sqlite:///{file}"
    store = await open_store(url)
    await put(store)
    await store.close()
    shutil.copy(file, backup)
    leases: list[Claim] = []
    for number in range(2):
        shutil.copy(backup, tmp_path / f"{number}.db")
        (tmp_path / f"{number}.db").replace(file)
        store = await open_store(url)
        if leases:
            assert not await tell(store, leases[0], Outcome.SUCCEEDED)
        leases += await claim(store)
        if len(leases) > 1:
            await finish(store, leases[1])
        await store.close()
        await asyncio.sleep(0.6)  # an epoch a fence later: a restore takes longer
    assert leases[0].fence < leases[1].fence


async def test_a_dump_restored_twice_gives_no_fence_twice(own_postgres_cluster: PostgresCluster) -> None:
    server = own_postgres_cluster
    original = server.create_database()
    await migrate(original)
    before = await open_store(original)
    await put(before)
    await before.close()
    fences = []
    for _ in range(2):
        store = Store(open_database(server.create_database(original), accepts_copies=True))
        (held,) = await claim(store)
        fences.append(held.fence)
        await finish(store, held)
        await store.close()
        await asyncio.sleep(0.6)
    assert FENCES <= fences[0] < fences[1]


async def _began(site: Site, count: int) -> None:
    async with asyncio.timeout(60):
        while len(site.ledger.entries("begin")) < count:
            await asyncio.sleep(0.01)


async def _all_runs(site: Site) -> list[Run]:
    async with asyncio.timeout(60):
        while True:
            try:
                return list(await site.client.list(limit=500))
            except Unavailable:
                await asyncio.sleep(0.1)
