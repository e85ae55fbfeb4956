"""Claims of pipelines: turn a claimed run into the claim of the part that it is at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from rota.core.jobs.pipelines import Pipeline, is_pipeline, payload_of
from rota.core.runs.claim import Claim, ClaimRequest, LimitedRequest, OrderedRequest, RestrictedRequest
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import Report
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from rota.errors import Invalid
from rota.store.databases.database import Tx
from rota.store.jobs import pipeline_stages
from rota.store.limits import slots
from rota.store.limits.slots import LimitedClaims
from rota.store.runs import report as reports
from rota.store.workers import claims, requirements
from rota.store.workers.claims import OrderedClaims
from rota.store.workers.requirements import RestrictedClaims


class _Stage(NamedTuple):
    """The columns of `stages_of`, in their order: the part that a run is at. `plan` is JSON."""

    run_id: object
    plan: str
    step: str
    job: str
    job_version: int
    pipeline: str


async def claim(tx: Tx, request: ClaimRequest) -> list[Claim]:
    return await parts(tx, await tx.hot.claim(request))


async def claim_limited(tx: Tx, request: LimitedRequest) -> LimitedClaims:
    claimed = await slots.claim(tx, request)
    return msgspec.structs.replace(claimed, claims=await parts(tx, claimed.claims)) if claimed.claims else claimed


async def claim_restricted(tx: Tx, request: RestrictedRequest) -> RestrictedClaims:
    claimed = await requirements.claim(tx, request)
    return msgspec.structs.replace(claimed, claims=await parts(tx, claimed.claims)) if claimed.claims else claimed


async def claim_in_order(tx: Tx, request: OrderedRequest, monotonic: Callable[[], float]) -> OrderedClaims:
    claimed = await claims.claim(tx, request, monotonic)
    claimed.plain = await parts(tx, claimed.plain)
    claimed.others = await parts(tx, claimed.others)
    return claimed


async def parts(tx: Tx, claimed: list[Claim]) -> list[Claim]:
    """Replace claims of pipelines by claims of their parts, in the transaction that claimed them.

    Other claims stay as they are. Runs of a paused pipeline are put back. A part whose input is missing fails, because
    a retry would fail, too.
    """
    staged = [claim for claim in claimed if is_pipeline(claim.overrides)]
    if not staged:
        return claimed
    rows = [_Stage(*row) for row in await tx.fetch("stages_of", [(claim.run_id,) for claim in staged])]
    stages = {str(stage.run_id): stage for stage in rows}
    pipelines = sorted({(stage.pipeline,) for stage in rows})
    # Races with a pause: a resume waits for this lock, and so for the runs that are put back here.
    paused = {name for (name,) in await tx.fetch("lock_pauses", pipelines)}
    put_back = [
        (claim.run_id, claim.fence)
        for claim in staged
        if claim.run_id not in stages or stages[claim.run_id].pipeline in paused
    ]
    await reports.take_away(tx, put_back)
    gone = {run_id for run_id, _ in put_back}
    results = await _results(tx, [claim.run_id for claim in staged])
    part_claims: dict[str, Claim] = {}
    failed: list[Report] = []
    for claim in staged:
        if claim.run_id in gone:
            continue
        try:
            part_claims[claim.run_id] = _part(claim, stages[claim.run_id], results.get(claim.run_id, {}))
        except Invalid as problem:
            failed.append(_failure(claim, problem))
    await pipeline_stages.opened(tx, part_claims.values())
    if failed:
        await reports.report(tx, failed)
    over = gone | {report.run_id for report in failed}
    return [part_claims.get(claim.run_id, claim) for claim in claimed if claim.run_id not in over]


async def _results(tx: Tx, runs: Sequence[str]) -> dict[str, dict[str, str | None]]:
    results: dict[str, dict[str, str | None]] = {}
    for run_id, step, result in await tx.fetch("done_steps", [(id,) for id in runs]):
        results.setdefault(str(run_id), {})[step] = result
    return results


def _part(claim: Claim, stage: _Stage, results: dict[str, str | None]) -> Claim:
    part = msgspec.json.decode(stage.plan, type=Pipeline).part(stage.step)
    payload = payload_of(part, claim.payload, results)
    return msgspec.structs.replace(
        claim,
        job=stage.job,
        job_version=stage.job_version,
        payload=payload,
        part=stage.step,
        pipeline=claim.job,
    )


def _failure(claim: Claim, problem: Invalid) -> Report:
    error = RunError(type="Invalid", message=problem.message, code=problem.code)
    return Report(claim.run_id, claim.fence, Outcome.FAILED, error=stored_error(error), began=False)
