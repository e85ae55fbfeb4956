"""Helpers for tests of the store: make a run, claim it, report, read its state."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.runs.claim import START, SUSPECTS, Claim, ClaimRequest, LimitedRequest, QueueRequest, Watermark
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.options import new_run
from rota.core.runs.outcome import Report
from rota.core.runs.run import NewRun, Run, RunError
from rota.core.states import Outcome, RunState
from rota.core.workers.worker import WorkerInfo, name_of
from rota.store import Store, new_id

LEASE = timedelta(seconds=30)
LEASE_MICROS = 30_000_000

WORK = JobDefinition(name="work")
WORKER = WorkerInfo(
    id="worker-1", name="worker", host="here", pid=1, version="1", queues=("default",), jobs=("work",), slots=10
)


def make(job: JobDefinition | str = WORK, *, id: str | None = None, payload: object = None, **options: Any) -> NewRun:
    """A run as the client would prepare it."""
    definition = JobDefinition(name=job) if isinstance(job, str) else job
    text = msgspec.json.encode({} if payload is None else payload).decode()
    return new_run(definition, id or new_id(), text, options)


async def put(store: Store, job: JobDefinition | str = WORK, **options: Any) -> str:
    """Enqueue one run; the id of the run that the answer names."""
    return (await store.enqueue([make(job, **options)]))[0].id


async def claim(
    store: Store,
    wanted: int = 100,
    *,
    worker: str = WORKER.id,
    queues: Iterable[str] = ("default",),
    known: dict[str, int] | None = None,
    solo: int = SUSPECTS,
    after: Watermark = START,
) -> list[Claim]:
    asks = tuple(QueueRequest(queue, wanted, after) for queue in queues)
    return await store.claim(ClaimRequest(worker, asks, known or {"work": 1}, LEASE_MICROS, solo))


async def claim_limited(
    store: Store,
    slots: int = 100,
    *,
    worker: str = WORKER.id,
    queues: Iterable[str] = ("default",),
    known: dict[str, int] | None = None,
    solo: int = SUSPECTS,
) -> list[Claim]:
    """Runs under limits, in the order of their claims."""
    request = LimitedRequest(worker, name_of(worker), tuple(queues), known or {"work": 1}, LEASE_MICROS, slots, solo)
    return (await store.claim_limited(request)).claims


async def put_and_claim(store: Store, job: JobDefinition | str = WORK, **options: Any) -> Claim:
    """One run, held by a worker."""
    run_id = await put(store, job, **options)
    name = job if isinstance(job, str) else job.name
    (found,) = await claim(store, known={name: 1})
    assert found.run_id == run_id
    return found


def report_of(claim: Claim, outcome: Outcome, **facts: Any) -> Report:
    if outcome in (Outcome.FAILED, Outcome.TIMED_OUT):
        error = RunError(type="ValueError", message="no luck")
        facts.setdefault("error", stored_error(error))
    return Report(claim.run_id, claim.fence, outcome, limited=claim.limited, **facts)


async def tell(store: Store, claim: Claim, outcome: Outcome, **facts: Any) -> bool:
    """Report one attempt; whether it was accepted."""
    return not (await store.report([report_of(claim, outcome, **facts)])).refused


async def finish(store: Store, claim: Claim) -> None:
    assert await tell(store, claim, Outcome.SUCCEEDED)


async def finish_all(store: Store, claims: Iterable[Claim]) -> None:
    assert not (await store.report([report_of(claim, Outcome.SUCCEEDED) for claim in claims])).refused


async def state_of(store: Store, run_id: str) -> RunState:
    return (await store.get_run(run_id)).state


async def outcomes_of(store: Store, run_id: str) -> list[Outcome | None]:
    return [attempt.outcome for attempt in await store.attempts(run_id)]


def ids(runs: Iterable[Run | Claim]) -> list[str]:
    return [run.run_id if isinstance(run, Claim) else run.id for run in runs]
