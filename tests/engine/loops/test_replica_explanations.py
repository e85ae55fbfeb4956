"""Test explanations of replicas that nobody takes, and that no restriction leaves a run without end."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from rota.core.states import RunState
from rota.errors import Invalid
from rota.testing import Harness
from tests.engine.worker.test_quotas import claimed, conduct, quota
from tests.support.clock import SECOND
from tests.support.forms import with_long_form

SCOPE = ("tenant", "x")


class Case(NamedTuple):
    """A job's options, the workers that are alive, and words of the explanation; without words, nothing is amiss."""

    options: dict[str, object]
    alive: tuple[str, ...]
    words: tuple[str, ...] = ()
    quota: int | None = None
    dead: tuple[str, ...] = ()


CASES = {
    "enough workers": Case({"replicas": 2}, ("a", "b")),
    "no worker": Case({"replicas": 2}, (), ("No worker is alive: start one with `rota worker`.",)),
    "too few workers": Case(
        {"replicas": 3},
        ("a",),
        ("2 replicas of the run wait for workers without one, and no live worker can take one: 2 more are needed.",),
    ),
    "one too few, one name twice": Case(
        {"replicas": 3},
        ("a", "b", "a"),
        ("1 replica of the run waits for a worker without one, and no live worker can take one: 1 more is needed.",),
    ),
    "too few with the label": Case(
        {"replicas": 2, "labels": ["gpu"]}, ("a", "b"), ("No live worker meets its requirements: label gpu.",)
    ),
    "the named ones are dead": Case(
        {"replicas": 1, "only_workers": ["c", "d"]},
        ("a",),
        ("No live worker meets its requirements: only c or d.",),
        dead=("c", "d"),
    ),
    "one of the named ones is dead": Case(
        {"replicas": 2, "only_workers": ["a", "d"]},
        ("a", "b"),
        ("1 replica of the run waits for a worker without one, and no live worker can take one: 1 more is needed.",),
        dead=("d",),
    ),
    "a quota of nothing": Case(
        {"replicas": 1}, ("a",), ("Its scope 'tenant/x' is paused by operator since 2030-01-01T12:00:00Z.",), 0
    ),
    "a quota of one": Case({"replicas": 2}, ("a", "b"), ("Quota of tenant/x is full: 1 of 1 slots are in use.",), 1),
    "all, one of whom died": Case(
        {"replicas": "all"}, ("a",), ("Run {} is the replica of worker 'd', which is not alive.",), dead=("d",)
    ),
}


async def begun(either: Harness, case: Case) -> str:
    if case.quota is not None:
        await quota(either, max_concurrency=case.quota)
    await either.declare("install", **case.options)
    for name in (*case.dead, *(case.alive if case.options["replicas"] == "all" else ())):
        await either.worker(name).heartbeat()
    run = await either.enqueue("install", {"scope": SCOPE})
    await conduct(either)
    either.clock.advance(either.lease + SECOND)
    return run.id


async def waiting(either: Harness, run: str) -> list[str]:
    return [one.run_id for one in await either.client.replicas(run) if one.state is RunState.QUEUED]


async def told(either: Harness, run: str) -> tuple[str, ...]:
    return (await either.client.explain(run)).words


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_it_says_why_nobody_takes_a_replica(either: Harness, case: Case) -> None:
    """Every worker takes what it may have; then each replica that is left, and their run, say why it is."""
    run = await begun(either, case)
    for name in case.alive:
        await claimed(either, name)
    left = await waiting(either, run)
    assert bool(left) is bool(case.words)
    for words in case.words:
        assert words.format(left[0]) in await told(either, run)
        for one in left:
            assert words.replace("Run {}", "It") in await told(either, one)
    if not case.words:
        assert not [words for words in await told(either, run) if "need" in words]


@pytest.mark.parametrize("seed", with_long_form(range(4), range(4, 80)))
async def test_it_names_a_reason_whenever_nobody_takes_a_replica_and_only_then(either: Harness, seed: int) -> None:
    """Workers come one by one. A replica is held back if none of those that are alive takes it: then, and only then, is
    there more to say of the run than where each of its replicas is."""
    chance = random.Random(seed)
    names = ["a", "b", "c", "d"]
    count = chance.randint(1, 3)
    options: dict[str, object] = {"replicas": {"count": count, "allowed_failures": 2}, "max_attempts": 1}
    if chance.random() < 0.5:
        options["labels"] = ["gpu"]
    if chance.random() < 0.5:
        options["only_workers"] = chance.sample(names, chance.randint(count, 4))
    if chance.random() < 0.4:
        await quota(either, max_concurrency=chance.randint(0, 2))
    await either.declare("install", **options)
    run = (await either.enqueue("install", {"scope": SCOPE})).id
    await conduct(either)
    for name in chance.sample(names, 4):
        worker = either.worker(name, labels=["gpu"] if chance.random() < 0.7 else [])
        await worker.heartbeat()
        for live in either.workers:
            await live.claim(1)
        if worker.claims and chance.random() < 0.5:
            await (worker.finish() if chance.random() < 0.5 else worker.fail())
            await conduct(either)
            for live in either.workers:
                await live.claim(1)
        if (await either.run(run)).state.is_final:
            return
        told_of_run = await told(either, run)
        left = await waiting(either, run)
        reasons = [words for words in told_of_run[1:] if not words.startswith("Replica ")]
        assert bool(reasons) is bool(left), told_of_run
        for one in left:
            assert "the next free worker takes it" not in " ".join(await told(either, one))


async def test_a_run_cannot_be_restricted_to_fewer_workers_than_it_needs(either: Harness) -> None:
    await either.declare("install", replicas={"count": 2, "allowed_failures": 1}, max_attempts=1)
    run = await either.enqueue("install")
    with pytest.raises(Invalid, match="replicas=2 need as many workers, and only_workers names 1: a"):
        await either.client.restrict(run.id, ["a"])
    await conduct(either)
    with pytest.raises(Invalid, match="replicas=2 need as many workers, and only_workers names 1: a"):
        await either.client.restrict(run.id, ["a"])
    await either.client.restrict(run.id, ["a", "b"])
    await (await claimed(either, "b")).finish()
    await conduct(either)
    await either.client.restrict(run.id, ["c"])
    await (await claimed(either, "c")).fail()
    await conduct(either)
    with pytest.raises(Invalid, match="1 of its 2 replicas have not succeeded, and 0 of these workers can execute one"):
        await either.client.restrict(run.id, ["b", "c"])
    await either.client.restrict(run.id, ["a", "c"])
    await (await claimed(either, "a")).finish()
    await conduct(either)
    assert await either.state(run) is RunState.SUCCEEDED
