"""A run with replicas, one of which a worker has; and one that will get replicas."""

from __future__ import annotations

from rota.core.jobs.job import JobDefinition
from rota.core.states import Outcome
from rota.core.workers.replicas import Replicas
from rota.store import Store
from tests.explorer.scenes.held import run_id
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import LATER, REAP, TIDY, cancels, claim_all, claims, reports, worker_called
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, make

_INSTALL = JobDefinition(name="install", replicas=Replicas(count=2))
_WORK = JobDefinition(name="work")
KNOWN = {"install": 1, "work": 1}


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    await store.save_jobs([_INSTALL, _WORK])
    for name in ("worker-1", "worker-A", "worker-B", "worker-C"):
        await store.workers.beat(worker_called(name))
    parent, second, follower = map(run_id, (1, 2, 3))
    await store.enqueue([make(_INSTALL, id=parent)])
    await store.conducts.step(absent=False)
    (held,) = await claim_all(store, "worker-1", KNOWN, 1)
    await store.enqueue([make(_WORK, id=follower, after=[parent])])
    await store.enqueue([make(_INSTALL, id=second)])
    free = next(one.run_id for one in await store.conducts.replicas(parent) if one.run_id != held.run_id)
    clock.advance(LEASE + SECOND)
    return {"replica": held, "parent": parent, "second": second, "follower": follower, "one": held.run_id, "free": free}


async def _conduct(party: Party) -> object:
    return (await party.store.conducts.step(absent=True)).count


async def _restrict(party: Party) -> object:
    return (await party.store.restrict(party.facts["parent"], ("worker-1", "worker-A"), "ann")).state


REPLICATED = Scene(
    "replicated",
    _arrange,
    (
        Operation("conduct", _conduct, LATER),
        reports("report success", ("replica", Outcome.SUCCEEDED, {})),
        reports("report failure", ("replica", Outcome.FAILED, {})),
        reports("hand back", ("replica", Outcome.HANDED_BACK, {})),
        cancels("cancel parent", "parent"),
        cancels("cancel second", "second"),
        Operation("restrict", _restrict),
        claims(KNOWN, 1),
        REAP,
        TIDY,
    ),
    KNOWN,
    harmless={
        ("report failure", "restrict"): "a replica that ended meanwhile keeps the requirements that it had",
        ("report success", "restrict"): "a replica that ended meanwhile keeps the requirements that it had",
        ("report failure", "claim"): "what a claim passes over, the conductor may stop before the next claim",
        ("restrict", "restrict"): "the trail says twice what both asked for",
    },
    triples=(("conduct", "report success", "cancel parent"), ("claim", "claim", "conduct")),
)
