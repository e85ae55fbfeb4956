"""A data job with schedules and a run of it: whoever drops it, uses it or changes it."""

from __future__ import annotations

from msgspec import structs

from rota.core.calendar.triggers import every
from rota.core.jobs.job import JobDefinition
from rota.core.schedules.revisions import Change
from rota.registry.data_jobs import define_data_job
from rota.store import Store
from tests.explorer.scenes.held import run_id
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import LATER, claims
from tests.support.clock import ManualClock
from tests.support.runs.runs import make
from tests.support.schedules.schedules import definition_of, minutes

KNOWN = {"ping": 2, "pong": 2}


def _job(name: str = "ping", path: str = "", **options: object) -> JobDefinition:
    return define_data_job(name, "http", {"url": f"https://example.com/{path}", **options})


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    job = await store.data_jobs.create(_job(limit={"max": 2, "when_full": "skip"}), "api", None)
    other = await store.data_jobs.create(_job("pong"), "api", None)
    await store.schedules.create("s", await definition_of(store, every("1m"), job, "s"), "test")
    await store.schedules.create("t", await definition_of(store, every("1m"), other, "t"), "test")
    await store.enqueue([structs.replace(make(job, id=run_id(1)), droppable=True)])
    clock.advance(minutes(1))
    return {"job": job, "other": other}


async def _enqueue(party: Party) -> object:
    orders = [structs.replace(party.make(party.facts[name]), droppable=True) for name in ("other", "job")]
    return [(answer.id, answer.created) for answer in await party.store.enqueue(orders)]


async def _drop(party: Party) -> object:
    left = await party.store.data_jobs.delete("ping", None, force=True)
    await party.store.cancel_left("ping", left, None, None)
    return left


async def _drop_softly(party: Party) -> object:
    return await party.store.data_jobs.delete("pong", None, force=False)


async def _change(party: Party) -> object:
    return (await party.store.data_jobs.write("ping", lambda _: _job(path="new"), "api", "ann")).job.version


async def _create(party: Party) -> object:
    return (await party.store.data_jobs.create(_job("pong", "again"), "api", None)).version


async def _pause(party: Party) -> object:
    await party.store.pause_job("ping", None, "ann")
    return None


async def _resume(party: Party) -> object:
    await party.store.resume_job("ping", "skip", "ann")
    return None


async def _cancel(party: Party) -> object:
    await party.store.cancel_job("ping", None, "ann", guarded=False)
    return None


async def _schedule(party: Party) -> object:
    definition = await definition_of(party.store, every("1m"), party.facts["job"], "u")
    await party.store.schedules.create("u", definition, "test")
    return None


async def _move(party: Party) -> object:
    definition = await definition_of(party.store, every("1m"), party.facts["job"], "t")
    await party.store.schedules.update("t", definition, Change(note="edited"))
    return None


async def _trigger(party: Party) -> object:
    return [run.state for run in await party.store.schedules.trigger("s", None, force=True)]


async def _plan(party: Party) -> object:
    answer = await party.store.planning.plan(10, {})
    return answer.schedules, answer.runs


JOBS = Scene(
    "jobs",
    _arrange,
    (
        Operation("enqueue", _enqueue),
        Operation("drop", _drop),
        Operation("drop softly", _drop_softly),
        Operation("change", _change),
        Operation("create", _create),
        Operation("pause", _pause),
        Operation("resume", _resume),
        Operation("cancel job", _cancel),
        Operation("schedule", _schedule),
        Operation("move schedule", _move),
        Operation("trigger", _trigger),
        Operation("plan", _plan, LATER),
        claims(KNOWN),
    ),
    KNOWN,
    triples=(
        ("drop", "schedule", "enqueue"),
        ("drop", "change", "move schedule"),
        ("pause", "plan", "trigger"),
    ),
    harmless={
        ("enqueue", "cancel job"): "a run that a cancel does not see is not begun until the job is resumed",
        ("drop", "cancel job"): "the trail has a cancel whose runs somebody else had ended",
    },
)
