"""Kinds of runs: what limited, rated, keyed and labelled ones cost to drain, and unique ones to enqueue, beside plain.

CPU time is compared, not the clock, which says little on a shared machine.
"""

from dataclasses import dataclass

from benchmarks.harness.driver import BATCH, Driver
from benchmarks.reports.report import Figures, Results, number, table

PLAIN = "plain"
DRAINED = (PLAIN, "limited", "rated", "keyed", "labelled")
ENQUEUED = (PLAIN, "unique", "idempotent")
LEAST = 0.5
"""What others than plain runs should reach of the plain rate."""


@dataclass(frozen=True)
class Cost:
    """CPU microseconds of a run: the server's, and the measured process's."""

    server: float
    process: float

    @property
    def whole(self) -> float:
        return self.server + self.process


async def drained(driver: Driver, n: int, kind: str) -> Cost:
    driver.kind = kind
    await driver.fill(n)
    used = (await driver.drain(n)).used
    return Cost(used.server / n * 1e6, used.workers / n * 1e6)


async def enqueued(driver: Driver, n: int, kind: str) -> Cost:
    driver.kind = kind
    used = await driver.bulk_usage(n, BATCH)
    return Cost(used.server / n * 1e6, used.workers / n * 1e6)


async def take(driver: Driver, n: int) -> Figures:
    """Each kind in the same database, after the one before it is drained."""
    figures: Figures = {}
    for act, kinds, measured in (("drain", DRAINED, drained), ("bulk", ENQUEUED, enqueued)):
        costs = {kind: await measured(driver, n, kind) for kind in kinds}
        for kind, cost in costs.items():
            figures[f"{act}_{kind}_server_us"] = cost.server
            figures[f"{act}_{kind}_process_us"] = cost.process
            figures[f"{act}_{kind}_ratio"] = costs[PLAIN].whole / cost.whole
    return figures


def section(results: Results, titles: dict[str, str]) -> str:
    """The table of all kinds, of whoever was measured."""
    rows = [
        [
            f"{titles[name]}: {act} {kind}",
            number(results.median("kinds", name, f"{act}_{kind}_server_us")),
            number(results.median("kinds", name, f"{act}_{kind}_process_us")),
            number(results.median("kinds", name, f"{act}_{kind}_ratio"), 2),
        ]
        for name in results.contenders("kinds")
        for act, kinds in (("drain", DRAINED), ("bulk", ENQUEUED))
        for kind in kinds
    ]
    head = ["CPU of a run, by kind", "server µs", "process µs", f"of the plain rate (goal {LEAST:g})"]
    return table(head, rows) if rows else ""
