"""Runs that make way at once for those of two schedules, and others that wait for them."""

from __future__ import annotations

from rota.core.jobs.job import JobDefinition
from rota.store import Store
from tests.explorer.scenes.held import run_id
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import LATER, TIDY, cancels, claims
from tests.support.clock import ManualClock
from tests.support.runs.runs import make
from tests.support.schedules.schedules import make_schedule, minutes, plan, runs_of

KNOWN = {"work": 1}
_WORK = JobDefinition(name="work")


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    await make_schedule(store, "first", overlap="cancel_previous")
    await make_schedule(store, "second", overlap="cancel_previous")
    clock.advance(minutes(1))
    await plan(store)
    (first,), (second,) = [[run.id for run in await runs_of(store, name)] for name in ("first", "second")]
    # Ids that do not follow the order in which those that they wait for make way.
    after_first, after_second, last = map(run_id, (2, 1, 3))
    await store.enqueue([make(_WORK, id=after_first, after=[first])])
    await store.enqueue([make(_WORK, id=after_second, after=[second])])
    await store.enqueue([make(_WORK, id=last, after=[after_first, after_second])])
    clock.advance(minutes(1))
    return {"first": first, "second": second, "after first": after_first, "after second": after_second, "last": last}


async def _plan(party: Party) -> object:
    answer = await party.store.planning.plan(10, {})
    return answer.schedules, answer.runs


async def _cancel_both(party: Party) -> object:
    return await party.store.bulk.cancel_waiting([party.facts["after first"], party.facts["after second"]], "no", "ann")


async def _follow(party: Party) -> object:
    order = party.make(_WORK, after=[party.facts["second"], party.facts["first"]])
    return [(answer.id, answer.created) for answer in await party.store.enqueue([order])]


DISPLACED = Scene(
    "displaced",
    _arrange,
    (
        Operation("plan", _plan, LATER),
        Operation("cancel both", _cancel_both),
        Operation("enqueue after both", _follow),
        cancels("cancel first", "first"),
        cancels("cancel after second", "after second"),
        cancels("cancel last", "last"),
        claims(KNOWN),
        TIDY,
    ),
    KNOWN,
    triples=(("plan", "cancel both", "cancel last"), ("plan", "cancel first", "enqueue after both")),
)
