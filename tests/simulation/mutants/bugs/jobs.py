"""Bugs in what is done to jobs as a whole: what a delete forgets, what a cancel leaves, what a change touches."""

from __future__ import annotations

from tests.simulation.mutants.patches import Edit, Planted, planted, seen_in

_DATA, _CANCEL, _JOBS, _SCHEDULES, _STAGES, _CLIENT = (
    "store/jobs/data_jobs.py",
    "store/jobs/cancel_job.py",
    "store/jobs/jobs.py",
    "store/schedules/schedules_of_job.py",
    "store/jobs/pipeline_stages.py",
    "client/jobs/data_jobs.py",
)
_DATA_SQL = "store/sql/jobs/data_jobs.sql"

_WHOLE = (
    planted(
        "delete-forgets-schedules",
        "orphan",
        _DATA,
        "            await schedules_of_job.drop_schedules_of(tx, name, actor, self._new_id, disable=force)\n",
        "",
    ),
    planted(
        "forced-delete-does-not-disable-other-schedules",
        "orphan",
        _SCHEDULES,
        "    if disable and locked:\n",
        "    if disable and not locked:\n",
    ),
    planted(
        "delete-forgets-that-it-was-paused",
        "orphan",
        _DATA,
        '            await tx.fetch("resume_job", job=name)  # or the next one of this name would be born paused\n',
        "",
    ),
    planted(
        "delete-under-a-claim",
        "job",
        _DATA_SQL,
        "        where coalesce(s.job, r.job) = :job)\n    + (select count(*) from rota_outside",
        "        where coalesce(s.job, r.job) <> r.job)\n    + (select count(*) from rota_outside",
    ),
    planted(
        "forced-delete-leaves-what-pipelines-need",
        "job",
        _STAGES,
        '    runs = await tx.fetch("live_stages_with", pattern=pattern) if versions else ()\n',
        "    runs = ()\n",
    ),
    Planted(
        "forced-delete-lets-go-on-what-is-being-done",
        "job",
        (
            Edit(
                _CLIENT,
                "            await self._store.cancel_job(name, _DELETED, actor, guarded=False, check=check)\n",
                "            pass\n",
            ),
            Edit(_CLIENT, "        if late_runs:\n", "        if late_runs and not force:\n"),
        ),
    ),
    planted(
        "cancel-does-not-disable",
        "job",
        _CANCEL,
        "    rows, planned, after = await schedules_of_job.cancel_schedules_with(tx, job, NIL_ID, actor, new_id)\n",
        "    rows, planned, after = [], True, None\n",
    ),
    planted(
        "cancel-leaves-what-is-being-done",
        "job",
        _CANCEL,
        "    done = await _cancel_all(tx, [*claimed[:1], *waiting], order)\n    if len(claimed) > 1 or",
        "    done = await _cancel_all(tx, waiting, order)\n    if",
    ),
    planted(
        "a-cancelled-job-takes-runs",
        "job",
        "core/jobs/status.py",
        "    JobVerb.RUN: {_I: _A, _A: _A, _P: _P},\n",
        "    JobVerb.RUN: {_I: _A, _A: _A, _P: _P, _C: _C},\n",
    ),
    planted(
        "resume-revives-twice",
        "job",
        _JOBS,
        '    resumed = bool(await tx.fetch("resume_job", job=job))\n    if resumed:\n',
        '    resumed = bool(await tx.fetch("resume_job", job=job))\n    if True:\n',
    ),
    planted(
        "resume-leaves-schedules-at-rest",
        "orphan",
        _JOBS,
        "    last = await schedules_of_job.resume_schedules_of(tx, job, after, mode, actor, new_id)\n",
        "    last = None\n",
    ),
    planted(
        "a-schedule-that-comes-to-a-held-job-is-awake",
        "job",
        "store/sql/schedules/schedules.sql",
        "    case when exists (select 1 from rota_pause where kind = 'job' and name = :job) then 1 else 0 end,\n",
        "    0,\n",
    ),
    planted(
        "a-change-takes-live-runs-along",
        "job",
        _DATA,
        "    await admit.declare(tx, made)\n",
        "    await admit.declare(tx, made)\n"
        '    for table, column in (("run", "id"), ("ready", "run_id")):\n'
        '        sql = f"update rota_{table} set job_version = :version where job = :job returning {column}"\n'
        "        await tx.fetch_sql(sql, job=made.name, version=made.version)\n",
    ),
    planted(
        "a-change-is-told-twice",
        "job",
        _DATA,
        '    await audit.note(tx, "job", made.name, event, actor, {"kind": made.kind, "version": made.version})\n',
        '    for told in (event, "resumed"):\n'
        '        await audit.note(tx, "job", made.name, told, actor, {"kind": made.kind, "version": made.version})\n',
    ),
    planted(
        "workers-do-every-run-with-the-newest-version",
        "job",
        "engine/worker/known_jobs.py",
        "return self._handlers[job].get(version) if job in",
        "return self._handlers[job].get(max(self._handlers[job])) if job in",
    ),
    planted(
        "a-retry-of-a-skipped-pipeline-has-no-parts",
        "P12",
        _STAGES,
        "    if unplanned:\n",
        "    if not unplanned:\n",
    ),
)

BUGS = (*seen_in("jobs", _WHOLE),)
