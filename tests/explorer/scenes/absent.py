"""Replicas of workers by name, one of which is gone for good, and a run that waits for what it was to do."""

from __future__ import annotations

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.states import Outcome
from rota.core.workers.replicas import Replicas
from rota.core.workers.worker import WorkerInfo
from rota.store import Store
from tests.explorer.scenes.held import run_id
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import LATER, REAP, TIDY, cancels, claim_all, claims, reports, worker_called
from tests.support.clock import MINUTE, ManualClock
from tests.support.runs.runs import make

_INSTALL = JobDefinition(name="install", replicas=Replicas(all=True))
_WORK = JobDefinition(name="work")
KNOWN = {"install": 1, "work": 1}


def _worker(name: str) -> WorkerInfo:
    return msgspec.structs.replace(worker_called(name), jobs=tuple(KNOWN))


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    await store.save_jobs([_INSTALL, _WORK])
    for name in ("gone", "worker-1"):
        await store.workers.beat(_worker(name))
    parent = run_id(1)
    await store.enqueue([make(_INSTALL, id=parent)])
    await store.conducts.step(absent=False)
    replicas = {replica.worker: replica.run_id for replica in await store.conducts.replicas(parent)}
    # Its id comes before that of the run that it waits for.
    follower = run_id(2).replace("0198", "0196", 1)
    await store.enqueue([make(_WORK, id=follower, after=[replicas["gone"]])])
    (held,) = await claim_all(store, "worker-1", KNOWN, 1)
    clock.advance(60 * MINUTE)
    await store.workers.beat(_worker("worker-1"))
    return {"held": held, "parent": parent, "absent": replicas["gone"], "follower": follower}


async def _give_up(party: Party) -> object:
    return (await party.store.conducts.step(absent=True)).count


ABSENT = Scene(
    "absent",
    _arrange,
    (
        Operation("give up", _give_up, LATER),
        reports("report success", ("held", Outcome.SUCCEEDED, {})),
        cancels("cancel absent", "absent"),
        cancels("cancel follower", "follower"),
        cancels("cancel parent", "parent"),
        claims(KNOWN, 1),
        REAP,
        TIDY,
    ),
    KNOWN,
    triples=(("give up", "cancel absent", "cancel follower"), ("give up", "report success", "cancel parent")),
)
