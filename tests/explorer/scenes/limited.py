"""Runs under limits, wide and narrow, and a quota: some hold slots, some wait for them."""

from __future__ import annotations

from rota.core.jobs.job import JobDefinition
from rota.core.limits.limits import Limit
from rota.core.limits.live import LimitedThing, live_quota
from rota.core.limits.quotas import quota_of
from rota.core.states import Outcome
from rota.store import Store
from tests.explorer.scenes.held import run_id
from tests.explorer.scenes.scene import Facts, Operation, Party, Scene
from tests.explorer.scenes.shared import PROMOTE, REAP, TIDY, cancels, claim_all, claims, reports
from tests.support.clock import SECOND, ManualClock
from tests.support.runs.runs import LEASE, make

_NEWEST = JobDefinition(name="newest", limits=(Limit(max=2, when_full="cancel_oldest"),))
_SKIP = JobDefinition(name="skip", limits=(Limit(max=1, when_full="skip"),))
_BOTH = JobDefinition(name="both", limits=(Limit(max=2), Limit(max=1, by=("a",))))
KNOWN = {"newest": 1, "skip": 1, "both": 1}
_TENANT = ("tenant", "a")


async def _arrange(store: Store, clock: ManualClock) -> Facts:
    await store.save_jobs([_NEWEST, _SKIP, _BOTH])
    await store.quotas.update("tenant", "", quota_of(max_concurrency=2, max_queued=9), "ann")
    one, two, three, four, five, later, six = map(run_id, (2, 1, 4, 3, 5, 6, 7))
    await store.enqueue([make(_BOTH, id=one, payload={"a": 1}, scope=_TENANT)])
    await store.enqueue([make(_NEWEST, id=two)])
    held = {claim.run_id: claim for claim in await claim_all(store, "worker-1", KNOWN)}
    await store.enqueue([make(_BOTH, id=three, payload={"a": 1}, scope=_TENANT)])
    await store.enqueue([make(_BOTH, id=four, payload={"a": 2})])
    await store.enqueue([make(_NEWEST, id=five)])
    await store.enqueue([make(_BOTH, id=six, payload={"a": 4})])
    await store.enqueue([make(_BOTH, id=later, payload={"a": 3}, delay="10s")])
    await store.enqueue([make(_SKIP, id=run_id(8))])
    await store.cancel(run_id(8), None, None)  # its limit stays, and nobody is under it
    clock.advance(LEASE + SECOND)
    return {"both": held[one], "newest": held[two], "one": one, "two": two, "three": three, "five": five}


def _enqueues(name: str, *orders: tuple[JobDefinition, dict[str, object]]) -> Operation:
    async def act(party: Party) -> object:
        return [
            (answer.id, answer.created)
            for answer in await party.store.enqueue([party.make(job, **facts) for job, facts in orders])
        ]

    return Operation(name, act)


async def _quota(party: Party) -> object:
    await party.store.quotas.update("tenant", "a", quota_of(max_concurrency=1), "ann")
    return None


async def _drop_quota(party: Party) -> object:
    return await party.store.quotas.delete("tenant", "", "ann")


async def _live(party: Party) -> object:
    await party.store.live_limits.update(LimitedThing.JOB, "both", live_quota(1, None), None)
    return None


# Leases are not locked, so that a change of a limit waits for no report.
STRAYS = "a place under a limit that is given to a run which ends at that moment is freed by the reaper's next sweep"
_OK, _FAILED = Outcome.SUCCEEDED, Outcome.FAILED

LIMITED = Scene(
    "limited",
    _arrange,
    (
        claims(KNOWN),
        reports("report both", ("both", _OK, {}), ("newest", _FAILED, {})),
        reports("report success", ("newest", _OK, {})),
        reports("report a retry", ("both", _FAILED, {"retry_in": 1})),
        _enqueues("enqueue newest", (_NEWEST, {})),
        _enqueues("enqueue skip", (_SKIP, {})),
        _enqueues("enqueue of both", (_BOTH, {"payload": {"a": 2}, "scope": _TENANT}), (_NEWEST, {})),
        cancels("cancel held", "one"),
        cancels("cancel waiting", "three"),
        cancels("cancel newest", "five"),
        Operation("set quota", _quota, STRAYS),
        Operation("drop quota", _drop_quota, STRAYS),
        Operation("limit live", _live, STRAYS),
        REAP,
        PROMOTE,
        TIDY,
    ),
    KNOWN,
    triples=(
        ("claim", "report both", "enqueue newest"),
        ("enqueue newest", "report success", "cancel newest"),
    ),
)
