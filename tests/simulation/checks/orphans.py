"""Orphans: rows that refer to something that is gone. At rest there is none, of whatever a world did.

Each question returns what it finds; nothing is to be found.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.world.observer import Finding, Remains

ORPHAN = "orphan"
_LIVE = ("ready", "lease", "outside", "conduct", "gate")
_KEPT = ("stage", "followed", "step", "progress", "log", "attempt", "replica")


def _of_live(table: str, column: str = "run_id") -> str:
    return f"""select distinct t.{column} from rota_{table} t
        where not exists (select 1 from rota_run r where r.id = t.{column} and r.state is null)"""


def _of_kept(table: str, column: str = "run_id") -> str:
    return f"""select distinct t.{column} from rota_{table} t
        where not exists (select 1 from rota_run r where r.id = t.{column})"""


def _of_schedules(table: str) -> str:
    return f"""select distinct t.schedule_id from rota_{table} t
        where not exists (select 1 from rota_schedule s where s.id = t.schedule_id)"""


_OF_RUNS = {
    **{f"a row of rota_{table} whose run is over or gone": _of_live(table) for table in _LIVE},
    **{f"a row of rota_{table} whose run is gone": _of_kept(table) for table in _KEPT},
    "a replica whose parent is gone": _of_kept("replica", "parent_id"),
    "a run that waits, and is over or gone": _of_live("wait"),
    "a run waits for one that is over or gone": _of_live("wait", "after_id"),
    "a run's version of its job is gone": """select r.id from rota_run r where r.state is null
        and not exists (select 1 from rota_job j where j.name = r.job and j.version = r.job_version)""",
    "the version of a part's job is gone": """select s.run_id from rota_stage s join rota_run r on r.id = s.run_id
        where r.state is null
        and not exists (select 1 from rota_job j where j.name = s.job and j.version = s.job_version)""",
    "a run of a schedule that is gone": """select r.id from rota_run r where r.schedule_id is not null
        and not exists (select 1 from rota_schedule s where s.id = r.schedule_id)""",
}
_NO_JOB = "not exists (select 1 from rota_job j where j.name = {} and j.dropped_at is null)"
_OF_SCHEDULES = {
    **{
        f"a row of rota_{table} whose schedule is gone": _of_schedules(table)
        for table in ("revision", "range", "scope_span", "lane", "lane_run", "skip")
    },
    "a cursor without a schedule": """select c.no from rota_cursor c
        where not exists (select 1 from rota_schedule s where s.cursor_no = c.no)""",
    "a schedule is to be planned that rests, or is deleted": """select s.name from rota_schedule_now s
        where s.next_at is not null and (s.deleted_at is not null or s.enabled = 0 or s.job_paused = 1)""",
    "a schedule names a job that is gone": f"""select s.name from rota_schedule s
        where s.deleted_at is null and s.enabled = 1 and {_NO_JOB.format("s.job")}""",
    "a job's own schedule outlives it": f"""select s.name from rota_schedule s
        where s.deleted_at is null and s.owner like 'job:%' and {_NO_JOB.format("s.job")}""",
}
_OF_JOBS = {
    "a pause of a job that is gone": f"""select p.name from rota_pause p
        where p.kind = 'job' and {_NO_JOB.format("p.name")}""",
    "a schedule rests for a job that does not": """select s.name from rota_schedule s
        where s.deleted_at is null and s.job_paused = 1
        and not exists (select 1 from rota_pause p where p.kind = 'job' and p.name = s.job)""",
    "an expectation of a job that is gone": f"""select e.subject from rota_expectation e
        where e.kind = 'job' and {_NO_JOB.format("e.subject")}""",
    "a breach without an expectation": """select b.subject from rota_breach b
        where not exists (select 1 from rota_expectation e where e.kind = b.kind and e.subject = b.subject)""",
}
QUESTIONS = {**_OF_RUNS, **_OF_SCHEDULES, **_OF_JOBS}
ALWAYS = {**_OF_SCHEDULES, **_OF_JOBS}
"""Those that a commit must not leave behind, either: pruning takes a run apart in several."""


def orphans(world: Remains, questions: dict[str, str] | None = None) -> Iterator[Finding]:
    for what, question in (QUESTIONS if questions is None else questions).items():
        found = [str(row[0])[-12:] for row in world.backend.look(question)]
        if found:
            yield ORPHAN, f"{what}: {', '.join(sorted(found)[:5])}"
