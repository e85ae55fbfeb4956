"""Worlds whose database loses its last commits: no fence is given twice, and everything comes to its end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from rota.core.states import FENCES
from rota.store.databases import epoch
from rota.store.databases.epoch import Epoch
from tests.simulation.script.entries import Lose, Mark
from tests.simulation.script.losses import losing
from tests.simulation.world import backends
from tests.simulation.world.backends import Backend, open_backend
from tests.simulation.world.world import Outcome, World
from tests.support.forms import with_long_form

SEEDS = with_long_form([range(20)], [range(start, start + 100) for start in range(20, 2_020, 100)])


@pytest.fixture
def backend() -> Iterator[Backend]:
    sqlite = open_backend(None)
    yield sqlite
    sqlite.close()


def live(seeds: range, backend: Backend) -> Iterator[tuple[int, Outcome]]:
    for seed in seeds:
        yield seed, World(losing(seed), backend).run()


@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_what_holds_although_commits_are_lost(seeds: range, backend: Backend) -> None:
    ends: set[str] = set()
    for seed, outcome in live(seeds, backend):
        assert outcome.violation is None, f"seed {seed}: {outcome.violation}\n" + "\n".join(outcome.history[-60:])
        ends |= outcome.ends.keys()
    assert {"succeeded", "failed", "cancelled"} <= ends


def test_both_databases_lose_alike(backend: Backend, postgres_url: str) -> None:
    postgres = open_backend(postgres_url)
    worlds = [[World(losing(seed), one).run() for one in (backend, postgres)] for seed in range(2)]
    postgres.close()
    for here, there in worlds:
        assert there.violation is None
        assert there.history == here.history


def _unchanged(last: Epoch | None, place: str, now: int) -> Epoch:
    return Epoch(last.number + 1 if last else 0, place, 0)


def _counted(last: Epoch | None, place: str, now: int) -> Epoch:
    return Epoch(last.number + 1, place, (last.number + 1) * FENCES) if last else Epoch(0, place, 0)


@pytest.mark.parametrize("following", [_unchanged, _counted])
def test_an_epoch_that_gives_fences_twice_is_found(
    following: object, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without care, and one that is counted in the database, where a second loss takes it back."""
    monkeypatch.setattr(backends, "following", following)
    assert epoch.following is not following
    violations = (outcome.violation for _, outcome in live(range(60), backend) if outcome.violation)
    assert any(violation.promise == "P26" for violation in violations)


def test_some_go_back_twice_to_the_same_mark() -> None:
    twice = 0
    for seed in range(60):
        losses = [one for one in losing(seed).entries if isinstance(one, Mark | Lose)]
        twice += any(isinstance(one, Lose) and isinstance(two, Lose) for one, two in pairwise(losses))
    assert twice > 10
