"""Many worlds: seed after seed, in as many processes as there are cores, and what came of them."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from tests.simulation.script.generator import draw
from tests.simulation.script.shrink import reproducer, shrink
from tests.simulation.world.backends import Backend, open_backend
from tests.simulation.world.world import Outcome, World

_CHUNK = 20


class Failure(msgspec.Struct, frozen=True):
    """A seed that broke a promise, made shorter."""

    seed: int
    violation: str
    reproducer: str
    history: list[str]

    def __str__(self) -> str:
        lines = "\n".join(self.history[-60:])
        return f"seed {self.seed}: {self.violation}\n{lines}\nagain: {self.reproducer}"


class Tally(msgspec.Struct):
    """What many worlds came to."""

    seeds: int = 0
    operations: int = 0
    faults: int = 0
    runs: int = 0
    seconds: float = 0.0
    ends: dict[str, int] = {}
    failures: list[Failure] = []
    differing: list[str] = []

    def add(self, other: Tally) -> None:
        self.seeds += other.seeds
        self.operations += other.operations
        self.faults += other.faults
        self.runs += other.runs
        self.ends = dict(Counter(self.ends) + Counter(other.ends))
        self.failures = [*self.failures, *other.failures]
        self.differing = [*self.differing, *other.differing]

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {state}" for state, count in sorted(self.ends.items()))
        return (
            f"{self.seeds:,} seeds, {self.operations:,} operations, {self.faults:,} faults, "
            f"{self.runs:,} runs ({ends}): {len(self.failures)} broke a promise"
        )


def run_seeds(seeds: Iterable[int], database_url: str | None = None, *, compare: bool = False) -> Tally:
    """In this process, up to the first that fails. With `compare`, each also on SQLite: whatever anybody could see must
    be the same.
    """
    tally = Tally()
    with _opened(database_url) as backend, _opened(None) as other:
        for seed in seeds:
            outcome = World(draw(seed), backend).run()
            _count(tally, outcome)
            if outcome.violation:
                tally.failures.append(failure_of(seed, backend, outcome, postgres=database_url is not None))
                break
            if compare and (there := World(draw(seed), other).run().history) != outcome.history:
                tally.differing.append(_difference(seed, there, outcome.history))
    return tally


def _difference(seed: int, there: list[str], here: list[str]) -> str:
    """The first lines that are not the same."""
    pairs = itertools.zip_longest(there, here, fillvalue="(nothing more)")
    sqlite, postgres = next((first, second) for first, second in pairs if first != second)
    return f"{reproducer(seed, postgres=True)}\n  SQLite:     {sqlite}\n  PostgreSQL: {postgres}"


def campaign(
    seeds: range, jobs: int, database_urls: list[str] | None = None, *, compare: bool = False
) -> Iterator[Tally]:
    """Yields the growing tally. Every process has a database of its own."""
    began, total = time.monotonic(), Tally()
    chunks = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
    context = multiprocessing.get_context("spawn")
    urls: multiprocessing.SimpleQueue[str | None] = context.SimpleQueue()
    for place in range(jobs):
        urls.put(database_urls[place] if database_urls else None)
    with context.Pool(jobs, _take_database, (urls,)) as pool:
        for tally in pool.imap_unordered(partial(_chunk, compare=compare), chunks):
            total.add(tally)
            total.seconds = time.monotonic() - began
            yield total


_database_url: str | None = None


def _take_database(urls: multiprocessing.SimpleQueue[str | None]) -> None:
    global _database_url  # noqa: PLW0603  # a pool's processes have no other place for it
    _database_url = urls.get()


def _chunk(seeds: range, *, compare: bool) -> Tally:
    return run_seeds(seeds, _database_url, compare=compare)


@contextmanager
def _opened(url: str | None) -> Iterator[Backend]:
    backend = open_backend(url)
    try:
        yield backend
    finally:
        backend.close()


def _count(tally: Tally, outcome: Outcome) -> None:
    ends = dict(Counter(tally.ends) + Counter(outcome.ends))
    tally.add(Tally(1, outcome.operations, outcome.faults, outcome.runs))
    tally.ends = ends


def failure_of(seed: int, backend: Backend, outcome: Outcome, *, postgres: bool) -> Failure:
    assert outcome.violation is not None
    kept, shorter = shrink(draw(seed), backend, outcome.violation.promise)
    return Failure(seed, str(shorter.violation), reproducer(seed, kept, postgres=postgres), shorter.history)
