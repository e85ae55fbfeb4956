"""Bugs in pipelines: parts that come again, too early, or never."""

from __future__ import annotations

from tests.simulation.mutants.patches import planted, seen_in

_STAGES, _CLAIMS, _CORE, _SQL = (
    "store/jobs/pipeline_stages.py",
    "store/jobs/pipeline_claims.py",
    "core/jobs/pipelines.py",
    "store/sql/jobs/pipelines.sql",
)

_PIPELINES = (
    planted(
        "a-part-is-left-out",
        "pipeline",
        _CORE,
        "self.parts.index(self.part(step)) + 1 :]",
        "self.parts.index(self.part(step)) + 2 :]",
    ),
    planted(
        "a-part-that-is-done-comes-again",
        "P16",
        _CORE,
        "self.parts.index(self.part(step)) + 1 :]",
        "self.parts.index(self.part(step)) :]",
    ),
    planted(
        "a-part-is-given-what-the-first-one-gave",
        "pipeline",
        _CLAIMS,
        "results.setdefault(str(run_id), {})[step] = result",
        "results.setdefault(str(run_id), {}).setdefault(step, next(iter(results[str(run_id)].values()), result))",
    ),
    planted(
        "a-part-of-a-paused-pipeline-is-done",
        "pause",
        _CLAIMS,
        "if claim.run_id not in stages or stages[claim.run_id].pipeline in paused",
        "if claim.run_id not in stages",
    ),
    planted(
        "what-was-put-back-is-never-looked-for-again",
        "P12",
        _SQL,
        "where s.pipeline = :job and rota_ready.run_id = s.run_id and rota_ready.job = :job;",
        "where s.pipeline = :job and rota_ready.run_id = s.run_id and rota_ready.job <> :job;",
    ),
    planted(
        "the-end-of-a-part-said-again-is-refused",
        "P10",
        _STAGES,
        '    return {(str(id), fence) for id, fence in await tx.fetch("advanced_before", ends)} if ends else set()\n',
        "    return set()\n",
    ),
    planted(
        "a-retry-that-keeps-parts-begins-with-the-first",
        "P16",
        _STAGES,
        "        await place(tx, {run_id: (plan, part)})\n",
        "        await place(tx, {run_id: (plan, plan.parts[0])})\n",
    ),
    planted(
        "the-end-of-a-part-is-not-recorded",
        "pipeline",
        _STAGES,
        "    await notes.write(tx, Notes(steps=tuple(_done(ends[id], lease) for id, lease in leases.items())))\n",
        "",
    ),
    planted(
        "the-next-part-is-of-the-job-before-it",
        "pipeline",
        _SQL,
        "on conflict (run_id) do update set no = excluded.no, step = excluded.step, job = excluded.job,",
        "on conflict (run_id) do update set no = excluded.no, step = excluded.step,",
    ),
)

BUGS = (*seen_in("pipelines", _PIPELINES),)
