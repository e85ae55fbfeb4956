"""Schedules that are due, with runs that wait or are held: queued behind each other, superseded, awaited."""

from __future__ import annotations

from rota.core.calendar.triggers import after, every
from rota.core.jobs.job import JobDefinition
from rota.core.ledger.backfill import BackfillOrder
from rota.core.schedules.revisions import Change
from rota.core.states import Outcome
from rota.store import Store
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import LATER, REAP, TIDY, cancels, claims, reports
from tests.support.clock import ManualClock
from tests.support.runs.runs import claim
from tests.support.schedules.schedules import MINUTE, definition_of, make_schedule, minutes, plan, runs_of

KNOWN = {"work": 1}
_WORK = JobDefinition(name="work")


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    await make_schedule(store, "queue", overlap="queue_all")
    await make_schedule(store, "newest", overlap="cancel_previous")
    await make_schedule(store, "after", after("1m"))
    clock.advance(minutes(1))
    await plan(store)
    held = {claim.run_id: claim for claim in await claim(store)}
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(minutes(1))
    await plan(store)
    clock.advance(minutes(1))
    first, second, _ = (run.id for run in await runs_of(store, "queue"))
    stopped, _, newest = (run.id for run in await runs_of(store, "newest"))
    (awaited,) = (run.id for run in await runs_of(store, "after"))
    claims = {"queued first": held[first], "stopped": held[stopped], "awaited": held[awaited]}
    return {**claims, "second": second, "newest": newest, "first": first}


async def _plan(party: Party) -> object:
    await party.store.planning.wake_followers(10)
    answer = await party.store.planning.plan(10, {})
    return answer.schedules, answer.runs


async def _plan_one(party: Party) -> object:
    answer = await party.store.planning.plan(1, {})
    return answer.schedules, answer.runs


async def _edit(party: Party) -> object:
    definition = await definition_of(party.store, every("2m"), name="queue", overlap="queue_all")
    await party.store.schedules.update("queue", definition, Change(note="edited"))
    return None


async def _pause(party: Party) -> object:
    return (await party.store.schedules.pause("newest", None, "ann", None)).state


async def _pause_queue(party: Party) -> object:
    return (await party.store.schedules.pause("queue", None, "ann", None)).state


async def _delete(party: Party) -> object:
    await party.store.schedules.delete("newest", "ann")
    return None


async def _trigger(party: Party) -> object:
    return [run.state for run in await party.store.schedules.trigger("queue", None, force=True)]


async def _trigger_newest(party: Party) -> object:
    return [run.state for run in await party.store.schedules.trigger("newest", None, force=True)]


async def _backfill(party: Party) -> object:
    now = party.store.clock.micros()
    answer = await party.store.ledger.backfill("queue", BackfillOrder(now - 10 * MINUTE, now - 5 * MINUTE))
    return len(answer.runs) if hasattr(answer, "runs") else None


async def _pause_job(party: Party) -> object:
    await party.store.pause_job("work", None, "ann")
    return None


async def _trouble(party: Party) -> object:
    await party.store.planning.note_provider_trouble("nobody", "it is gone")
    return None


_OK, _FAILED = Outcome.SUCCEEDED, Outcome.FAILED

SCHEDULED = Scene(
    "scheduled",
    _arrange,
    (
        Operation("plan", _plan, LATER),
        Operation("plan one", _plan_one, LATER),
        Operation("edit", _edit),
        Operation("pause", _pause),
        Operation("pause queue", _pause_queue),
        Operation("delete", _delete),
        Operation("trigger", _trigger),
        Operation("trigger newest", _trigger_newest),
        Operation("backfill", _backfill),
        Operation("pause job", _pause_job),
        Operation("note trouble", _trouble),
        reports("report all", ("queued first", _OK, {}), ("stopped", Outcome.CANCELLED, {}), ("awaited", _OK, {})),
        reports("report first", ("queued first", _OK, {})),
        reports("report failure", ("queued first", _FAILED, {}), ("awaited", _FAILED, {})),
        cancels("cancel first", "first"),
        cancels("cancel second", "second"),
        cancels("cancel newest", "newest"),
        claims(KNOWN),
        REAP,
        TIDY,
    ),
    KNOWN,
    triples=(
        ("plan", "edit", "report all"),
        ("plan one", "plan one", "edit"),
        ("plan", "cancel newest", "report all"),
    ),
)
