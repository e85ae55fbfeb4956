"""Claims of pipelines: turn a claimed run into the claim of the part that it is at."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.core.jobs.pipelines import Pipeline, is_pipeline, payload_of
from rota.core.runs.claim import Claim, ClaimRequest, LimitedRequest, RestrictedRequest
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import Report
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from rota.errors import Invalid
from rota.store.databases.database import Row, Tx
from rota.store.jobs import pipeline_stages
from rota.store.limits import slots
from rota.store.limits.slots import LimitedClaims
from rota.store.runs import report as reports
from rota.store.workers import requirements
from rota.store.workers.requirements import RestrictedClaims


async def claim(tx: Tx, request: ClaimRequest) -> list[Claim]:
    return await parts(tx, await tx.hot.claim(request))


async def claim_limited(tx: Tx, request: LimitedRequest) -> LimitedClaims:
    found = await slots.claim(tx, request)
    return msgspec.structs.replace(found, claims=await parts(tx, found.claims)) if found.claims else found


async def claim_restricted(tx: Tx, request: RestrictedRequest) -> RestrictedClaims:
    found = await requirements.claim(tx, request)
    return msgspec.structs.replace(found, claims=await parts(tx, found.claims)) if found.claims else found


async def parts(tx: Tx, claims: list[Claim]) -> list[Claim]:
    """Replace claims of pipelines by claims of their parts, in the transaction that claimed them.

    Other claims stay as they are. Runs of a paused pipeline are put back. A part whose input is missing fails, because
    a retry would fail, too.
    """
    staged = [claim for claim in claims if is_pipeline(claim.overrides)]
    if not staged:
        return claims
    rows = await tx.fetch("stages_of", [(claim.run_id,) for claim in staged])
    found = {str(row[0]): row for row in rows}
    paused = {name for (name,) in await tx.fetch("lock_pauses", sorted({(row[5],) for row in rows}))}
    back = [(one.run_id, one.fence) for one in staged if one.run_id not in found or found[one.run_id][5] in paused]
    await reports.take_away(tx, back)
    gone = {run_id for run_id, _ in back}
    results = await _results(tx, [claim.run_id for claim in staged])
    given: dict[str, Claim] = {}
    failed: list[Report] = []
    for claim in staged:
        if claim.run_id in gone:
            continue
        try:
            given[claim.run_id] = _part(claim, found[claim.run_id], results.get(claim.run_id, {}))
        except Invalid as problem:
            failed.append(_impossible(claim, problem))
    await pipeline_stages.opened(tx, given.values())
    if failed:
        await reports.report(tx, failed)
    over = gone | {report.run_id for report in failed}
    return [given.get(claim.run_id, claim) for claim in claims if claim.run_id not in over]


async def _results(tx: Tx, runs: Sequence[str]) -> dict[str, dict[str, str | None]]:
    results: dict[str, dict[str, str | None]] = {}
    for run_id, step, result in await tx.fetch("done_steps", [(id,) for id in runs]):
        results.setdefault(str(run_id), {})[step] = result
    return results


def _part(claim: Claim, stage: Row, results: dict[str, str | None]) -> Claim:
    _, plan, step, job, version, _ = stage
    part = msgspec.json.decode(plan, type=Pipeline).part(step)
    payload = payload_of(part, claim.payload, results)
    return msgspec.structs.replace(claim, job=job, job_version=version, payload=payload, part=step)


def _impossible(claim: Claim, problem: Invalid) -> Report:
    error = RunError(type="Invalid", message=problem.message, code=problem.code)
    return Report(claim.run_id, claim.fence, Outcome.FAILED, error=stored_error(error), began=False)
