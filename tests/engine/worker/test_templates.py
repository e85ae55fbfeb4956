"""Test jobs that are created as data, with steps, schemas and parts, and changed while their runs live."""

from __future__ import annotations

import pytest

from rota import RunState
from rota.client.client import Order
from rota.core.progress.steps import StepState
from rota.errors import BadPayload, Invalid, JobInUse, UnknownJob, UnknownStep
from rota.testing import Harness

SCHEMA = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
PARTS = [
    {"step": "fetch", "job": "fetch-page", "payload": {"url": "{payload.url}"}},
    {"step": "count", "job": "count-words", "payload": {"page": "{steps.fetch.page}"}},
]


async def test_a_template_with_steps_is_kept_as_it_was_created(either: Harness) -> None:
    client = either.client
    await client.data_jobs.create("label", "external", payload_schema=SCHEMA, steps=["look", "tell"])
    with pytest.raises(BadPayload, match="url"):
        await client.enqueue(Order("label", {}))
    run = await client.enqueue(Order("label", {"url": "a"}))
    (held,) = await client.external.claim("scanner")
    with pytest.raises(UnknownStep, match="lok"):
        await client.external.step(held.run_id, held.fence, "lok", "running")
    await client.external.step(held.run_id, held.fence, "look", "succeeded", result=1)
    steps = [(step.id, step.state) for step in await client.steps(run.id)]
    assert steps == [("look", StepState.SUCCEEDED), ("tell", StepState.PENDING)]


async def test_a_run_keeps_the_version_that_it_was_enqueued_with(either: Harness) -> None:
    client = either.client
    await client.data_jobs.create("label", "external", steps=["look", "tell"])
    old = await client.enqueue(Order("label", {}))
    await client.data_jobs.update("label", steps=["look", "sign"])
    new = await client.enqueue(Order("label", {}))
    claimed = {held.run_id: held for held in await client.external.claim("scanner", max=2)}
    assert [claimed[run.id].job_version for run in (old, new)] == [1, 2]
    await client.external.step(old.id, claimed[old.id].fence, "tell", "succeeded")
    with pytest.raises(UnknownStep):
        await client.external.step(new.id, claimed[new.id].fence, "tell", "succeeded")
    assert [step.id for step in await client.steps(old.id)] == ["look", "tell"]
    assert [step.id for step in (await client.job("label")).steps] == ["look", "sign"]


async def parts_in_code(harness: Harness) -> None:
    @harness.app.job(name="fetch-page")
    async def fetch(url: str) -> dict[str, str]:
        return {"page": f"three words: {url}"}

    @harness.app.job(name="count-words")
    async def count(page: str) -> int:
        return len(page.split())

    await harness.store.save_jobs(harness.app.registry.definitions())


async def test_a_pipeline_that_was_created_as_data_is_executed(either: Harness) -> None:
    await parts_in_code(either)
    await either.client.data_jobs.create("publish", pipeline=PARTS)
    with pytest.raises(BadPayload, match="url"):
        await either.client.enqueue(Order("publish", {}))
    run = await either.client.enqueue(Order("publish", {"url": "here"}))
    await either.drain()
    done = await either.run(run.id)
    assert (done.state, done.result) == (RunState.SUCCEEDED, 3)
    assert [(step.id, step.state) for step in await either.client.steps(run.id)] == [
        ("fetch", StepState.SUCCEEDED),
        ("count", StepState.SUCCEEDED),
    ]


async def test_a_pipeline_is_changed_for_runs_that_come(either: Harness) -> None:
    await parts_in_code(either)
    await either.client.data_jobs.create("publish", pipeline=PARTS, timeout="1h")
    old = await either.client.enqueue(Order("publish", {"url": "here"}))
    changed = await either.client.data_jobs.update("publish", pipeline=PARTS[:1])
    new = await either.client.enqueue(Order("publish", {"url": "here"}))
    await either.drain()
    assert [part.step for part in changed.pipeline] == ["fetch"]
    assert changed.timeout is not None
    results = [(await either.run(run.id)).result for run in (old, new)]
    assert results == [3, {"page": "three words: here"}]


async def test_a_pipeline_whose_runs_live_is_in_use(either: Harness) -> None:
    await parts_in_code(either)
    await either.client.data_jobs.create("publish", pipeline=PARTS)
    await either.client.enqueue(Order("publish", {"url": "here"}))
    with pytest.raises(JobInUse, match="1 live run"):
        await either.client.data_jobs.delete("publish")
    await either.drain()
    await either.client.data_jobs.delete("publish")


async def test_a_part_that_a_pipeline_has_before_it_is_in_use(either: Harness) -> None:
    client = either.client
    for job in ("look", "tell"):
        await client.data_jobs.create(job, "external")
    await client.data_jobs.create("publish", pipeline=[{"step": job, "job": job} for job in ("look", "tell")])
    with pytest.raises(JobInUse, match="part of 'publish'"):
        await client.data_jobs.delete("tell")
    waits, held = [(await client.enqueue(Order("publish", {}))).id for _ in range(2)]
    (mine,) = await client.external.claim("scanner")
    waits, held = (waits, held) if mine.run_id == held else (held, waits)
    with pytest.raises(JobInUse, match="2 live runs"):
        await client.data_jobs.delete("tell")
    await client.data_jobs.delete("tell", force=True, actor="ada")
    assert [await either.state(run) for run in (waits, held)] == [RunState.CANCELLED, RunState.CANCELLING]
    assert (await either.run(waits)).cancelled_by == "ada"


async def test_a_forced_delete_that_was_cut_short_is_finished_by_another(either: Harness) -> None:
    """Its answer got lost before it came to what somebody holds: such runs would wait for a job that is gone."""
    client = either.client
    for job in ("look", "tell"):
        await client.data_jobs.create(job, "external")
    await client.data_jobs.create("publish", pipeline=[{"step": job, "job": job} for job in ("look", "tell")])
    run = (await client.enqueue(Order("publish", {}))).id
    await client.external.claim("scanner")
    assert await either.store.data_jobs.delete("tell", None, force=True) == [run]
    with pytest.raises(UnknownJob):
        await client.data_jobs.delete("tell")
    assert await either.state(run) is RunState.RUNNING
    with pytest.raises(UnknownJob):
        await client.data_jobs.delete("tell", force=True)
    assert await either.state(run) is RunState.CANCELLING


async def test_a_part_that_is_done_is_not_in_use_by_a_run(either: Harness) -> None:
    client = either.client
    for job in ("look", "tell"):
        await client.data_jobs.create(job, "external")
    await client.data_jobs.create("publish", pipeline=[{"step": job, "job": job} for job in ("look", "tell")])
    run = await client.enqueue(Order("publish", {}))
    (mine,) = await client.external.claim("scanner")
    await client.external.complete(run.id, mine.fence)
    await client.data_jobs.delete("look", force=True)
    (mine,) = await client.external.claim("scanner")
    await client.external.complete(run.id, mine.fence)
    assert await either.state(run.id) is RunState.SUCCEEDED


async def test_a_pipeline_is_no_part_of_another(either: Harness) -> None:
    await parts_in_code(either)
    await either.client.data_jobs.create("publish", pipeline=PARTS)
    with pytest.raises(Invalid, match="is a pipeline"):
        await either.client.data_jobs.create("twice", pipeline=[{"step": "a", "job": "publish"}])
