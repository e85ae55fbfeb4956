"""Test dependent runs with real workers: in order, with the results of their parents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rota import Context, Follows, Order, RunState, SyncContext
from rota.core.runs.dependencies import RelatedRun
from rota.errors import Invalid, UnknownRun
from rota.job import Job
from rota.testing import Harness
from tests.support.jobs import isolated_jobs


def told(parents: Sequence[RelatedRun]) -> list[list[Any]]:
    return [[parent.id, parent.job, str(parent.state), parent.result] for parent in parents]


def jobs(harness: Harness) -> tuple[Job[[int], Any], Job[[], Any], Job[[], Any]]:
    @harness.app.job(max_attempts=1)
    def number(n: int) -> int:
        if n < 0:
            raise ValueError("no luck")
        return n

    @harness.app.job
    async def parents(ctx: Context) -> list[list[Any]]:
        return told(await ctx.parents())

    @harness.app.job
    def sync_parents(ctx: SyncContext) -> list[list[Any]]:
        return told(ctx.parents())

    return number, parents, sync_parents


async def test_a_handler_gets_the_results_of_those_before_it(either: Harness) -> None:
    number, parents, sync_parents = jobs(either)
    one, two, first, second = await either.app.aenqueue_many(
        [
            number.options(ref="one").order(1),
            number.options(ref="two").order(2),
            parents.options(after=["two", "one"]).order(),
            sync_parents.options(after=[Follows("one", on="end")]).order(),
        ]
    )
    await either.drain()
    assert (await either.run(first)).result == [
        [two.id, "number", "succeeded", 2],
        [one.id, "number", "succeeded", 1],
    ]
    assert (await either.run(second)).result == [[one.id, "number", "succeeded", 1]]


async def test_a_run_that_follows_nobody_has_no_parents(either: Harness) -> None:
    _, parents, _ = jobs(either)
    run = await parents.aenqueue()
    await either.drain()
    assert (await either.run(run)).result == []


@pytest.mark.parametrize("name", ["results_of_parents", "results_of_parents_at_once"])
async def test_so_does_one_in_a_process_of_its_own(harness: Harness, name: str) -> None:
    number, _, _ = jobs(harness)
    harness.app.job(isolation="process")(getattr(isolated_jobs, name))
    first = await number.aenqueue(7)
    run = await harness.client.enqueue(Order(name, {}, {"after": [first]}))
    await harness.drain()
    assert (await harness.run(run)).result == [7]


async def test_in_vain(either: Harness) -> None:
    number, parents, _ = jobs(either)
    first = await number.aenqueue(-1)
    skipped = await parents.options(after=[first]).aenqueue()
    anyway = await parents.options(after=[Follows(first, on="end")]).aenqueue()
    await either.drain()
    assert (await either.run(skipped)).state is RunState.SKIPPED
    assert (await either.run(anyway)).result == [[first.id, "number", "failed", None]]


async def test_a_retry_by_hand_knows_its_parents(either: Harness) -> None:
    number, parents, _ = jobs(either)
    first = await number.aenqueue(7)
    run = await parents.options(after=[first]).aenqueue()
    await either.drain()
    again = await either.client.retry(run.id)
    await either.drain()
    assert (await either.run(again)).result == (await either.run(run)).result


async def test_one_of_many_ways_to_say_it(either: Harness) -> None:
    number, parents, _ = jobs(either)
    first = await number.aenqueue(7)
    run = await either.client.get(first.id)
    for after in (first.id, first.id[-12:], first.id.upper(), first, run, {"run": first.id}, Follows(run)):
        follower = await parents.options(after=[after]).aenqueue()
        assert [parent.id for parent in await either.client.parents(follower.id)] == [first.id]
    assert len(await either.client.children(first.id[-12:])) == 7
    await either.drain()


async def test_what_is_refused_leaves_nothing(either: Harness) -> None:
    number, _, _ = jobs(either)
    with pytest.raises(UnknownRun):
        await number.options(after=["beef"]).aenqueue(1)
    with pytest.raises(Invalid, match="did you mean 'first'"):
        await either.app.aenqueue_many([number.options(ref="first").order(1), number.options(after=["fist"]).order(2)])
    with pytest.raises(Invalid, match="cycle: a → b → a"):
        await either.app.aenqueue_many(
            [number.options(ref="a", after=["b"]).order(1), number.options(ref="b", after=["a"]).order(2)]
        )
    assert await either.client.list() == []


async def test_bulk_with_shared_options(either: Harness) -> None:
    number, parents, _ = jobs(either)
    first = await number.aenqueue(7)
    runs = await parents.options(after=[first]).aenqueue_many([{}, {}, {}])
    await either.drain()
    assert [(await either.run(run)).result[0][3] for run in runs] == [7, 7, 7]


async def test_a_ref_names_one_run_also_if_nobody_follows_it(harness: Harness) -> None:
    number, _, _ = jobs(harness)
    with pytest.raises(Invalid, match="two runs of this call have the ref 'one'"):
        await harness.app.aenqueue_many([number.options(ref="one").order(1), number.options(ref="one").order(2)])
    assert len(await harness.app.aenqueue_many([number.options(ref="one").order(1), number.order(2)])) == 2


async def test_runs_that_end_in_vain_are_counted(either: Harness) -> None:
    _, parents, _ = jobs(either)
    label = either.app.external("label")
    await either.store.save_jobs(either.app.registry.definitions())
    await either.app.aenqueue_many(
        [
            label.options(ref="one").order(),
            parents.options(ref="two", after=["one"]).order(),
            parents.options(after=["two"]).order(),
            parents.options(after=[Follows("one", otherwise="cancel")]).order(),
        ]
    )
    (held,) = await either.client.external.claim("somebody")
    await either.client.external.fail(held.run_id, held.fence, "no luck", retry=False)
    label_runs = either.client.meters.of["label", "default"].runs
    parent_runs = either.client.meters.of["parents", "default"].runs
    assert label_runs[RunState.FAILED].value == 1
    assert (parent_runs[RunState.SKIPPED].value, parent_runs[RunState.CANCELLED].value) == (2, 1)
