"""The example application of `rota dev`: small jobs with visible results."""

from __future__ import annotations

import asyncio
import random
import time

from rota.app import Rota
from rota.client.client import Client, Order
from rota.config import Config
from rota.core.calendar.triggers import after, cron, every
from rota.core.progress.control_flow import Snooze
from rota.core.runs.run import RunFilter
from rota.engine.handlers.context import Context


def make(config: Config | None = None) -> Rota:
    app = Rota(config=config)

    @app.job
    def hello(name: str = "world") -> str:
        """Return a greeting: the smallest job."""
        return f"Hello, {name}!"

    @app.job(queue="images", timeout="30s")
    def resize_image(file: str, width: int = 640) -> dict[str, object]:
        """Resize an image. Blocking code runs in a thread."""
        time.sleep(random.uniform(0.2, 0.8))
        return {"file": file, "width": width, "height": width * 9 // 16}

    @app.job
    async def fetch_prices(ctx: Context, symbols: list[str]) -> dict[str, float]:
        """Fetch prices, count them, and stop between two symbols when cancelled."""
        prices = {}
        for symbol in symbols:
            ctx.checkpoint()
            await asyncio.sleep(0.2)
            prices[symbol] = round(random.uniform(10, 500), 2)
            ctx.count("fetched")
        return prices

    @app.job(max_attempts=5, backoff=["2s", "5s", "10s"])
    async def flaky_upload(ctx: Context, file: str) -> str:
        """Upload a file. Every other attempt fails, and is retried after a while."""
        await asyncio.sleep(0.1)
        if random.random() < 0.5:
            raise ConnectionError(f"the other side hung up during attempt {ctx.attempt}")
        return f"{file} is uploaded"

    @app.job(steps=["read", {"id": "convert", "timeout": "1m"}, {"id": "publish", "cancelable": False}])
    async def import_catalog(ctx: Context, pages: int = 40) -> dict[str, int]:
        """Import a catalog in steps: watch it, read its log, cancel it, and retry it from a step."""
        products = await ctx.step("read", read_catalog, ctx, pages)
        prices = await ctx.step("convert", convert_prices, ctx, products)
        return {"products": products, "shops": await ctx.step("publish", publish, ctx, prices)}

    app.job(isolation="process", queue="reports", timeout="1m")(report)
    app.job(slow_sync)

    @app.job
    def cleanup(older_than: str = "30d") -> str:
        """Delete old files. Enqueued with a delay, it is among the scheduled runs."""
        return f"nothing is older than {older_than}"

    @app.job(unique=True, max_attempts=1)
    async def pulse() -> None:
        """Enqueue a few other jobs, then snooze without occupying a worker."""
        await (await app.connect()).enqueue_many(random.sample(_orders(), 2))
        raise Snooze("5s")

    _schedule(app)
    return app


def _schedule(app: Rota) -> None:
    """Declare a schedule of each kind."""
    app.schedule("greet", "hello", every("10s"), payload={"name": "world at {plan_time}"})
    app.schedule("tidy", "cleanup", after("1m"), description="A minute after the last run ended.")
    app.schedule(
        "morning-report",
        "report",
        cron("0 9 * * MON-FRI", "Europe/Berlin"),
        payload={"month": 1},
        catch_up="all",
        description="On weekdays at nine in Berlin.",
    )
    app.schedule(
        "prices",
        "fetch_prices",
        every("30s"),
        scopes=[("market", "nyse"), ("market", "xetra")],
        payload={"symbols": ["{scope.id}"]},
        jitter="5s",
        description="A run for each market, spread over a few seconds.",
    )
    app.schedule("sync", "slow_sync", every("15s"), overlap="skip", description="Every other run is skipped.")


async def read_catalog(ctx: Context, pages: int) -> int:
    products = 0
    async for page in ctx.track(range(1, pages + 1), summary="pages", step="read"):
        await asyncio.sleep(0.1)
        products += 25
        if page % 10 == 0:
            ctx.log.info("%d products on %d pages so far", products, page)
    return products


async def convert_prices(ctx: Context, products: int) -> list[float]:
    ctx.log.info("converting the prices of %d products", products)
    prices = []
    for share in range(0, 100, 4):
        ctx.progress(share, step="convert")
        await asyncio.sleep(0.1)
        prices.append(round(random.uniform(1, 99), 2))
    ctx.log.warning("%d prices were rounded", len(prices))
    return prices


async def publish(ctx: Context, prices: list[float]) -> int:
    """Publish prices. This step cannot be cancelled: a cancel waits until it is done."""
    for shop in ("Berlin", "Lyon", "Porto"):
        await asyncio.sleep(0.5)
        ctx.log.info("%d prices are in the shop in %s", len(prices), shop)
    return 3


def report(month: int) -> dict[str, int]:
    """Compute a report. Heavy work has a process of its own, which does not slow other runs down."""
    primes = [n for n in range(2, 20_000 + month) if all(n % k for k in range(2, int(n**0.5) + 1))]
    return {"month": month, "primes": len(primes)}


async def slow_sync(ctx: Context) -> int:
    """Take longer than the schedule's interval, so that runs are skipped. Ends early when the worker stops."""
    steps = 0
    while steps < 100 and not ctx.shutting_down:
        ctx.checkpoint()
        await asyncio.sleep(0.2)
        steps += 1
    return steps


async def seed(client: Client) -> None:
    """Enqueue the first runs, once for a database. Runs of schedules may be there already."""
    if await client.list(RunFilter(job="pulse"), limit=1):
        return
    later = Order("cleanup", {}, {"delay": "5m", "tags": ["nightly"]})
    await client.enqueue_many(
        [*_orders(), later, Order("slow_sync", {}), Order("import_catalog", {}), Order("pulse", {})]
    )


def _orders() -> list[Order]:
    return [
        Order("hello", {"name": random.choice(["Ada", "Grace", "Linus", "you"])}),
        Order("resize_image", {"file": f"holiday-{random.randint(1, 99)}.jpg"}),
        Order("fetch_prices", {"symbols": ["AAPL", "MSFT", "NVDA"]}),
        Order("flaky_upload", {"file": f"backup-{random.randint(1, 99)}.zip"}),
        Order("report", {"month": random.randint(1, 12)}),
    ]
