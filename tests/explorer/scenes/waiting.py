"""Runs that nobody has: due, due later, keyed, and those that follow others."""

from __future__ import annotations

from datetime import timedelta

from msgspec import structs

from rota.core.jobs.job import JobDefinition, Retention
from rota.core.states import Outcome
from rota.store import Store
from tests.explorer.scenes.held import run_id
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import LATER, PROMOTE, TIDY, cancels, claims
from tests.support.clock import MINUTE, ManualClock
from tests.support.runs.runs import claim, make, tell

KNOWN = {"work": 1}
_WORK = JobDefinition(name="work")


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    await store.save_jobs([_WORK])
    old, done, due, later, keyed, follower, last = map(run_id, (9, 8, 1, 2, 3, 5, 4))
    await store.enqueue([make(_WORK, id=old, max_attempts=1), make(_WORK, id=done, max_attempts=1)])
    for held in await claim(store):
        await tell(store, held, Outcome.FAILED)
    clock.advance(MINUTE)
    await store.enqueue([make(_WORK, id=due), make(_WORK, id=later, delay="10s"), make(_WORK, id=keyed, key="k")])
    await store.enqueue([make(_WORK, id=follower, after=[due, later])])
    await store.enqueue([make(_WORK, id=last, after=[follower])])
    clock.advance(MINUTE)
    return {"due": due, "later": later, "keyed": keyed, "follower": follower, "last": last, "old": old, "done": done}


async def _enqueue_keyed(party: Party) -> object:
    return [(answer.id, answer.created) for answer in await party.store.enqueue([party.make(_WORK, key="k")])]


async def _replace(party: Party) -> object:
    order = party.make(_WORK, key="k", unique={"on_conflict": "replace"})
    return [(answer.id, answer.created) for answer in await party.store.enqueue([order])]


async def _follow(party: Party) -> object:
    order = party.make(_WORK, after=[party.facts["later"], party.facts["due"], party.facts["old"]])
    return [(answer.id, answer.created) for answer in await party.store.enqueue([order])]


async def _cancel_many(party: Party) -> object:
    some = [party.facts[name] for name in ("last", "later", "due")]
    return await party.store.bulk.cancel_waiting(some, "not needed", "ann")


async def _restrict(party: Party) -> object:
    return (await party.store.restrict(party.facts["due"], ("elsewhere",), "ann")).state


async def _pause(party: Party) -> object:
    return (await party.store.pause_queue("default", None, "ann")).paused is not None


async def _retry_many(party: Party) -> object:
    old = [party.facts[name] for name in ("old", "done")]
    runs = [structs.replace(party.make(_WORK), retry_of=id, origin_id=id) for id in old]
    refused = await party.store.bulk.retry(runs)
    return sorted((id, type(error).__name__) for id, error in refused.items())


async def _prune(party: Party) -> object:
    return await party.store.prune(lambda _: Retention(keep=0, keep_for=timedelta(0)))


WAITING = Scene(
    "waiting",
    _arrange,
    (
        claims(KNOWN),
        PROMOTE,
        TIDY,
        Operation("enqueue keyed", _enqueue_keyed),
        Operation("replace", _replace),
        Operation("enqueue after", _follow),
        Operation("cancel many", _cancel_many),
        Operation("restrict", _restrict),
        Operation("pause queue", _pause),
        Operation("retry many", _retry_many),
        Operation("prune", _prune, LATER),
        cancels("cancel due", "due"),
        cancels("cancel keyed", "keyed"),
        cancels("cancel follower", "follower"),
        cancels("cancel last", "last"),
    ),
    KNOWN,
    harmless={("restrict", "restrict"): "the trail says twice what both asked for"},
    triples=(
        ("cancel due", "cancel follower", "enqueue after"),
        ("claim", "cancel many", "promote"),
        ("enqueue keyed", "replace", "cancel keyed"),
    ),
)
