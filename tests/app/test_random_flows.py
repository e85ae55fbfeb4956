"""Property: whatever flow, whatever fails, is retried or cancelled, results are those of the plain functions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rota import Rota, RunFailed, RunState, chain, group
from rota.testing import drain
from tests.support.forms import with_long_form

FAILURES: Counter[str] = Counter()
"""How often the step of this tag is still to fail."""


class Planned:
    """What a random flow should do, step by step, in the order in which its runs are enqueued."""

    def __init__(self, draw: random.Random, jobs: SimpleNamespace) -> None:
        self.draw, self.jobs = draw, jobs
        self.results: list[int] = []
        self.parents: list[list[int]] = []

    def step(self, parents: list[int], *, single: bool) -> Any:
        """Return a step after these; it takes one number, several numbers, or none."""
        tag, by = f"s{len(self.results)}", self.draw.randint(1, 9)
        FAILURES[tag] = self.draw.choice([0, 0, 0, 0, 1, 2])
        numbers = [self.results[parent] for parent in parents]
        self.parents.append(parents)
        if not parents:
            self.results.append(by)
            return self.jobs.number.s(by, tag)
        self.results.append(sum(numbers) + by)
        return self.jobs.plus.s(by=by, tag=tag) if single else self.jobs.total.s(by=by, tag=tag)

    def chained(self, parents: list[int], depth: int) -> tuple[Any, list[int]]:
        """Return a chain that ends with one number, and the place of its last step."""
        stages, single = [], True
        for _ in range(self.draw.randint(1, 3)):
            if depth and single and self.draw.random() < 0.5:
                parts = [self.chained(parents, depth - 1) for _ in range(self.draw.randint(1, 3))]
                stages.append(group(*(part for part, _ in parts)))
                parents, single = [place for _, places in parts for place in places], False
            else:
                stages.append(self.step(parents, single=single))
                parents, single = [len(self.results) - 1], True
        if not single:
            stages.append(self.step(parents, single=False))
            parents = [len(self.results) - 1]
        return chain(*stages), parents


@pytest.fixture
def app(database_url: str) -> Iterator[Rota]:
    app = Rota(database_url)
    yield app
    app.close()


@pytest.fixture
def jobs(app: Rota) -> SimpleNamespace:
    def fail(tag: str) -> None:
        if FAILURES[tag] > 0:
            FAILURES[tag] -= 1
            raise ConnectionError(tag)

    @app.job(max_attempts=2, backoff="0s")
    def number(by: int, tag: str) -> int:
        fail(tag)
        return by

    @app.job(max_attempts=2, backoff="0s")
    def plus(x: int, by: int, tag: str) -> int:
        fail(tag)
        return x + by

    @app.job(max_attempts=2, backoff="0s")
    def total(xs: list[int], by: int, tag: str) -> int:
        fail(tag)
        return sum(xs) + by

    return SimpleNamespace(number=number, plus=plus, total=total)


@pytest.mark.parametrize("seed", with_long_form(range(6), range(6, 100)))
def test_results_are_those_of_the_functions(app: Rota, jobs: SimpleNamespace, seed: int) -> None:
    draw = random.Random(seed)
    FAILURES.clear()
    planned = Planned(draw, jobs)
    flow, _ = planned.chained([], depth=2)
    failing = [FAILURES[f"s{place}"] == 2 for place in range(len(planned.results))]
    handles = [app.handle(handle.id) if draw.random() < 0.3 else handle for handle in flow.enqueue_all()]
    assert len(handles) == len(planned.results)
    cancelled = [place for place in range(len(handles)) if draw.random() < 0.1]
    for place in cancelled:
        if handles[place].status() is not RunState.SKIPPED:  # one that it follows may be cancelled
            handles[place].cancel()
    drain(app)

    lost: set[int] = set()
    for place, handle in enumerate(handles):
        if failing[place] or place in cancelled or lost & set(planned.parents[place]):
            lost.add(place)
            with pytest.raises(RunFailed):
                handle.result()
        else:
            assert handle.result() == planned.results[place]
    client = app.blocking
    FAILURES.clear()
    for place in sorted(lost):  # mended by hand, each after what it follows
        again = client.retry(handles[place].id)
        drain(app)
        assert app.handle(again.id).result() == planned.results[place]
    assert not [run for run in client.list(limit=500) if not run.state.is_final]
