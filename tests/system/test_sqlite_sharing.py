"""Test several processes on one SQLite file: nothing is lost or doubled."""

from __future__ import annotations

import asyncio

from rota import RunState
from tests.support.processes.rota_process import RotaProcess
from tests.support.wait import until
from tests.system.site import APP, Site


def start_producer(site: Site, count: int) -> RotaProcess:
    return site.processes.python("-m", "tests.support.jobs.system_jobs", str(count), environment=site.environment())


async def acknowledged(producer: RotaProcess) -> list[str]:
    """The ids that it was given, once it is done."""
    assert await asyncio.to_thread(producer.wait) == 0, producer.log
    return producer.log.split()


async def test_two_workers_and_a_producer_share_a_file(sqlite_site: Site) -> None:
    site = sqlite_site
    for name in ("one", "two"):
        site.worker(name)
    runs = await acknowledged(start_producer(site, 300))
    assert len(runs) == 300
    await site.all_succeed(runs)
    await site.agree(runs)
    assert site.begins_once(runs)
    assert len({entry.pid for entry in site.ledger.entries("begin")}) == 2


async def test_a_worker_killed_while_others_write_harms_nobody(sqlite_site: Site) -> None:
    site = sqlite_site
    doomed, heir = site.worker("doomed"), site.worker("heir")
    producer = start_producer(site, 300)
    await until(lambda: len(site.ledger.entries("begin")) > 50)
    doomed.kill()
    runs = await acknowledged(producer)
    assert len(runs) == 300
    await site.all_succeed(runs)
    await site.agree(runs)
    assert heir.exit_code is None


async def test_a_producer_killed_in_the_middle_leaves_whole_runs(sqlite_site: Site) -> None:
    site = sqlite_site
    site.worker()
    producer = start_producer(site, 100_000)
    await until(lambda: len(site.ledger.entries("begin")) > 50)
    producer.kill()
    told = producer.log.split()
    await site.all_succeed(told)
    await until(lambda: nothing_live(site))
    await site.agree(told)
    assert len(site.ledger.entries("begin")) - len(told) in (0, 1), "at most the one it had no answer for"


async def nothing_live(site: Site) -> bool:
    return await site.client.store.queue_counts() == [] and len(site.ledger.entries("begin")) == len(
        site.ledger.entries("end")
    )


async def test_servers_join_on_one_file(sqlite_site: Site) -> None:
    site = sqlite_site
    environment = site.environment(ROTA_PORT="0")
    commands = [("dev", APP), ("dev", APP), ("server", APP), ("server",)]
    servers = [site.processes.rota(*command, environment=environment) for command in commands]
    for server in servers:
        server.until_said("http://127.0.0.1:")
    runs = await site.enqueue_many(100, "nap", seconds=[0.05])
    later = await site.enqueue("quick", {"delay": "300ms"})
    await site.all_succeed([*runs, later])
    assert site.begins_once([*runs, later])
    for server in servers:
        server.terminate()
    assert [server.wait() for server in servers] == [0] * len(servers)
    assert (await site.run(later)).state is RunState.SUCCEEDED
