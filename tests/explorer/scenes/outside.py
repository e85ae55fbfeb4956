"""A run that was handed over, one that waits for a step, and one that its worker still holds."""

from __future__ import annotations

from rota.core.external.external import ExternalReport, StepReport
from rota.core.jobs.job import JobDefinition
from rota.core.progress.steps import StepState
from rota.core.runs.outcome import Wait
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from rota.store import Store
from tests.explorer.scenes.held import run_id
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import REAP, TIDY, cancels, claims, reports
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE_MICROS, claim, make, tell

KNOWN = {"work": 1}
_WORK = JobDefinition(name="work")
_MINUTE = 60_000_000


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    await store.save_jobs([_WORK])
    given, waits, kept, follower = map(run_id, (2, 3, 1, 4))
    await store.enqueue([make(_WORK, id=id) for id in (given, waits, kept)])
    held = {claim.run_id: claim for claim in await claim(store)}
    await tell(store, held[given], Outcome.SNOOZED, wait=Wait(_MINUTE, None))
    await tell(store, held[waits], Outcome.SNOOZED, wait=Wait(_MINUTE, "approval"))
    await store.enqueue([make(_WORK, id=follower, after=[kept, given])])
    clock.advance(61 * SECOND)
    return {"given": held[given], "waits": held[waits], "kept": held[kept], "run": given, "step": waits, "last": kept}


def _finishes(name: str, held: str, ending: ExternalReport) -> Operation:
    async def act(party: Party) -> object:
        claim = party.facts[held]
        return (await party.store.external.finish(claim.run_id, claim.fence, ending)).state

    return Operation(name, act)


def _ends_step(name: str, held: str) -> Operation:
    async def act(party: Party) -> object:
        claim = party.facts[held]
        said = StepReport("approval", StepState.SUCCEEDED, "1")
        return await party.store.external.step(claim.run_id, claim.fence, LEASE_MICROS, said)

    return Operation(name, act)


async def _beat(party: Party) -> object:
    claim = party.facts["given"]
    answer = await party.store.external.progress(claim.run_id, claim.fence, LEASE_MICROS, 50, "half")
    return answer.cancelling


OUTSIDE = Scene(
    "outside",
    _arrange,
    (
        _finishes("finish", "given", ExternalReport(Outcome.SUCCEEDED)),
        _finishes("finish otherwise", "given", ExternalReport(Outcome.FAILED, error=RunError("Jam", "x"), retry=False)),
        _ends_step("end step", "waits"),
        _ends_step("end step early", "kept"),
        Operation("beat", _beat),
        reports("hand over", ("kept", Outcome.SNOOZED, {"wait": Wait(_MINUTE, "approval")})),
        reports("report late", ("given", Outcome.SUCCEEDED, {}), ("kept", Outcome.SUCCEEDED, {})),
        cancels("cancel", "run"),
        cancels("cancel who waits", "step"),
        cancels("cancel held", "last"),
        REAP,
        TIDY,
        claims(KNOWN),
    ),
    KNOWN,
    triples=(("finish", "cancel", "reap"), ("hand over", "end step early", "cancel held")),
)
