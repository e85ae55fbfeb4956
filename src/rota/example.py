"""The application that `rota dev` starts when it is given none: small jobs whose work can be seen."""

from __future__ import annotations

import asyncio
import random
import time

from rota.app import Rota
from rota.client import Client, Order
from rota.config import Config
from rota.core.signals import Snooze
from rota.engine.context import Context


def make(config: Config | None = None) -> Rota:
    app = Rota(config=config)

    @app.job
    def hello(name: str = "world") -> str:
        """The smallest job: it greets."""
        return f"Hello, {name}!"

    @app.job(queue="images", timeout="30s")
    def resize_image(file: str, width: int = 640) -> dict[str, object]:
        """Blocking code: it runs in a thread of its own."""
        time.sleep(random.uniform(0.2, 0.8))
        return {"file": file, "width": width, "height": width * 9 // 16}

    @app.job
    async def fetch_prices(ctx: Context, symbols: list[str]) -> dict[str, float]:
        """Async code, which counts what it does and stops between two symbols when it is cancelled."""
        prices = {}
        for symbol in symbols:
            ctx.checkpoint()
            await asyncio.sleep(0.2)
            prices[symbol] = round(random.uniform(10, 500), 2)
            ctx.count("fetched")
        return prices

    @app.job(max_attempts=5, backoff=["2s", "5s", "10s"])
    async def flaky_upload(ctx: Context, file: str) -> str:
        """Fails every other time, and is tried again after a while."""
        await asyncio.sleep(0.1)
        if random.random() < 0.5:
            raise ConnectionError(f"the other side hung up during attempt {ctx.attempt}")
        return f"{file} is uploaded"

    app.job(isolation="process", queue="reports", timeout="1m")(report)

    @app.job
    def cleanup(older_than: str = "30d") -> str:
        """Enqueued with a delay: look for it among the scheduled ones."""
        return f"nothing is older than {older_than}"

    @app.job(unique=True, max_attempts=1)
    async def pulse() -> None:
        """Keeps things moving: enqueues a few others, then sleeps without holding a worker."""
        await (await app.connect()).enqueue_many(random.sample(_orders(), 2))
        raise Snooze("5s")

    return app


def report(month: int) -> dict[str, int]:
    """Heavy computing: it has a process of its own, which cannot slow the others down."""
    primes = [n for n in range(2, 20_000 + month) if all(n % k for k in range(2, int(n**0.5) + 1))]
    return {"month": month, "primes": len(primes)}


async def sow(client: Client) -> None:
    """A first handful, for a database that has no runs yet."""
    if await client.list(limit=1):
        return
    later = Order("cleanup", {}, {"delay": "5m", "tags": ["nightly"]})
    await client.enqueue_many([*_orders(), later, Order("pulse", {})])


def _orders() -> list[Order]:
    return [
        Order("hello", {"name": random.choice(["Ada", "Grace", "Linus", "you"])}),
        Order("resize_image", {"file": f"holiday-{random.randint(1, 99)}.jpg"}),
        Order("fetch_prices", {"symbols": ["AAPL", "MSFT", "NVDA"]}),
        Order("flaky_upload", {"file": f"backup-{random.randint(1, 99)}.zip"}),
        Order("report", {"month": random.randint(1, 12)}),
    ]
