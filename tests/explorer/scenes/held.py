"""Runs that workers hold, whose leases have just expired, and runs that follow them."""

from __future__ import annotations

from rota.core.jobs.job import JobDefinition
from rota.core.progress.notes import Notes, StepNote
from rota.core.progress.steps import StepState
from rota.core.runs.outcome import Wait
from rota.core.states import Outcome
from rota.store import Store
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import PROMOTE, REAP, TIDY, cancels, claims, reports, worker_called
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, LEASE_MICROS, claim, make

KNOWN = {"work": 1}
_WORK = JobDefinition(name="work")
_HOUR = 3_600_000_000


def run_id(number: int) -> str:
    return f"01980000-0000-7000-8000-{number:012x}"


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    await store.save_jobs([_WORK])
    one, two, three, after_one, after_both, after_that, after_others = map(run_id, range(1, 8))
    runs = [make(_WORK, id=id) for id in (one, two, three)]
    # Ids that do not follow the order of who waits for whom.
    await store.enqueue([runs[0], make(_WORK, id=two, max_attempts=1), runs[2]])
    held = {claim.run_id: claim for claim in await claim(store, 3)}
    await store.enqueue([make(_WORK, id=after_one, after=[one])])
    await store.enqueue([make(_WORK, id=after_both, after=[three, two])])
    await store.enqueue([make(_WORK, id=after_others, after=[one, three])])
    await store.enqueue([make(_WORK, id=after_that, after=[after_both], delay="1h")])
    clock.advance(LEASE + SECOND)
    claims = {"one": held[one], "two": held[two], "three": held[three]}
    return {**claims, "first": one, "second": two, "third": three, "follower": after_one, "both": after_both}


async def _extend(party: Party) -> object:
    held = [(party.facts[name].run_id, party.facts[name].fence) for name in ("three", "two", "one")]
    answer = await party.store.extend(worker_called("worker-1"), held, LEASE_MICROS)
    return sorted(answer.lost), sorted(answer.cancelling)


async def _note(party: Party) -> object:
    held = [party.facts[name] for name in ("three", "one")]
    steps = tuple(StepNote(one.run_id, one.fence, one.attempt, "one", 1, StepState.RUNNING, 0) for one in held)
    return await party.store.notes.write(Notes(steps=steps))


async def _follow(party: Party) -> object:
    facts = party.facts
    order = party.make(_WORK, after=[facts["second"], facts["first"]])
    return [(answer.id, answer.created) for answer in await party.store.enqueue([order])]


async def _restrict(party: Party) -> object:
    return (await party.store.restrict(party.facts["first"], ("elsewhere",), "ann")).state


_OK, _FAILED, _BACK = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.HANDED_BACK

HELD = Scene(
    "held",
    _arrange,
    (
        reports("report success", ("one", _OK, {})),
        reports("report the third", ("three", _OK, {})),
        reports("report failure", ("two", _FAILED, {})),
        reports("report a retry", ("one", _FAILED, {"retry_in": 1})),
        reports("report mixed", ("three", _OK, {}), ("two", _FAILED, {}), ("one", _BACK, {})),
        reports("report mixed otherwise", ("one", _OK, {}), ("three", _FAILED, {}), ("two", _OK, {})),
        reports("snooze", ("one", Outcome.SNOOZED, {"retry_in": 5_000_000})),
        reports("hand over", ("one", Outcome.SNOOZED, {"wait": Wait(_HOUR, None)})),
        Operation("extend", _extend, "a lease that somebody has is renewed by the next heartbeat"),
        Operation("note", _note),
        Operation("enqueue after both", _follow),
        Operation("restrict", _restrict),
        cancels("cancel the first", "first"),
        cancels("cancel its follower", "follower"),
        cancels("cancel who follows both", "both"),
        REAP,
        claims(KNOWN),
        PROMOTE,
        TIDY,
    ),
    KNOWN,
    harmless={("restrict", "restrict"): "the trail says twice what both asked for"},
    triples=(
        ("report success", "reap", "enqueue after both"),
        ("report mixed", "report mixed otherwise", "reap"),
        ("report mixed", "cancel the first", "cancel who follows both"),
        ("report failure", "report success", "cancel who follows both"),
    ),
)
