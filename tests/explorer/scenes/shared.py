"""Operations that several scenes have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.core.runs.claim import SUSPECTS, Claim, OrderedRequest, QueueRequest
from rota.core.states import Outcome
from rota.core.workers.requirements import met_by
from rota.core.workers.worker import WorkerInfo
from rota.store import Store
from tests.explorer.scenes.scene import Operation, Party
from tests.support.runs.runs import LEASE_MICROS, WORKER, report_of

SKIPS = "a run that somebody has is passed over, and is there for the next claim"
LATER = "what somebody has at that moment is left to the next look"


def worker_called(id: str) -> WorkerInfo:
    return msgspec.structs.replace(WORKER, id=id, name=id.partition("@")[0])


async def claim_all(store: Store, worker: str, known: Mapping[str, int], count: int = 10) -> list[Claim]:
    """Claim of every kind, in the one order."""
    needs = await store.known_requirements()
    request = OrderedRequest(
        worker_id=worker,
        name=worker.partition("@")[0],
        asks=(QueueRequest("default", count),),
        known=dict(known),
        lease=LEASE_MICROS,
        slots=count,
        solo=SUSPECTS,
        met=met_by(worker_called(worker), needs),
        needs=frozenset(needs),
    )
    answer = await store.claim_in_order(request)
    return [*answer.others, *answer.plain]


def claims(known: Mapping[str, int], count: int = 10) -> Operation:
    async def act(party: Party) -> object:
        return sorted((claim.run_id, claim.fence) for claim in await claim_all(party.store, party.worker, known, count))

    return Operation("claim", act, SKIPS)


Ending = tuple[str, Outcome, dict[str, Any]]
"""The name of a claim, how the attempt ended, and what else its report says."""


def reports(name: str, *endings: Ending) -> Operation:
    """Report runs that the scene holds. Of a batch, each report counts by itself."""

    async def told(party: Party, *some: Ending) -> list[tuple[str, int]]:
        said = [report_of(party.facts[held], outcome, **facts) for held, outcome, facts in some]
        answer = await party.store.report(said)
        return sorted((report.run_id, report.fence) for report in answer.refused)

    parts = [lambda party, ending=ending: told(party, ending) for ending in endings]
    return Operation(name, lambda party: told(party, *endings), parts=tuple(parts) if len(endings) > 1 else ())


def cancels(name: str, run: str) -> Operation:
    async def act(party: Party) -> object:
        return (await party.store.cancel(party.facts[run], "not needed", "ann")).state

    return Operation(name, act)


async def _promote(party: Party) -> object:
    return (await party.store.promote(10)).count


async def _reap(party: Party) -> object:
    answer = await party.store.reap(10)
    return answer.requeued, answer.ended


async def _tidy(party: Party) -> object:
    await party.store.tidy()
    return None


PROMOTE = Operation("promote", _promote, LATER)
REAP = Operation("reap", _reap, LATER)
TIDY = Operation("tidy", _tidy, LATER)
