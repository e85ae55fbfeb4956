"""Test that an SQLite file has one writer per process, however many clients an app has."""

import asyncio
import threading

from rota import Job, Rota


async def test_the_clients_of_an_app_share_one_writer(app: Rota, crawl: Job[[str, int], str]) -> None:
    await crawl.aenqueue("https://example.com/async", 1)
    await asyncio.to_thread(crawl.enqueue, "https://example.com/plain", 1)
    assert len(app.blocking.list()) == 2
    assert [thread.name for thread in threading.enumerate()].count("rota-sqlite-writer") == 1
    await app.aclose()
    await asyncio.to_thread(crawl.enqueue, "https://example.com/later", 1)
    assert len(app.blocking.list()) == 3
