"""Behind a transaction pooler: no prepared statements, no notifications, the same results."""

import asyncio

import pytest

from rota import Rota, RunState
from rota.errors import BadConfig
from rota.store import Store, open_database
from tests.support.databases.pooler import pooled


async def test_a_worker_behind_a_transaction_pooler_finds_its_work_by_polling(postgres_url: str) -> None:
    direct = Store(open_database(postgres_url))
    await direct.migrate()
    await direct.close()
    async with pooled(postgres_url) as (url, pooler):
        app = Rota(url, poll="50ms")

        @app.job
        async def double(n: int) -> int:
            return 2 * n

        async with app.running() as client:
            runs = await double.aenqueue_many([{"n": n} for n in range(300)])
            runs = [*runs, *await asyncio.gather(*(double.aenqueue(n=n) for n in range(300, 320)))]
            done = [await client.wait(run.id, "60s") for run in runs]
        assert [run.state for run in done] == [RunState.SUCCEEDED] * len(runs)
        assert [run.result for run in done] == [2 * n for n in range(320)]
        assert pooler.handovers > 20


async def test_without_saying_so_the_error_names_the_way_out(postgres_url: str) -> None:
    direct = Store(open_database(postgres_url))
    await direct.migrate()
    await direct.close()
    async with pooled(postgres_url) as (url, _):
        unaware = Store(open_database(url.partition("?")[0]))
        with pytest.raises(BadConfig, match="pooler=transaction") as raised:
            await asyncio.gather(*(unaware.now() for _ in range(100)))
        assert "\n" not in raised.value.message  # nothing of what the driver advises instead
        await unaware.close()


def test_another_kind_of_pooler_is_refused() -> None:
    with pytest.raises(BadConfig, match="pooler cannot be 'session'"):
        open_database("postgresql://127.0.0.1/x?pooler=session")
