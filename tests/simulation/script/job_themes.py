"""A theme of jobs as a whole: created, changed, paused, cancelled, resumed and deleted while their runs are done."""

from __future__ import annotations

from tests.simulation.application.data_jobs import DATA_JOBS
from tests.simulation.script.coordination_themes import COORDINATION_THEMES, CoordinationTheme
from tests.simulation.script.themes import Theme

_CHANGES = ("update", "replace", "pause", "resume", "resume", "cancel", "cancel", "retry", "attach", "delete", "force",
    "create", "create")  # fmt: skip


class JobTheme(CoordinationTheme, frozen=True, kw_only=True):
    """`changed`: how often something is done to a job, besides that it is created; `job_verbs`: what."""

    changed: tuple[int, ...] = (0,)
    job_verbs: tuple[str, ...] = _CHANGES


JOBS = JobTheme(
    name="jobs",
    weight=10,
    engines=(1, 2),
    span=(12, 20),
    distance=(0.2, 1.0),
    jobs=tuple(DATA_JOBS),
    acts={
        "flow": ("ok:0.1/ok:0.1/ok:0.1", "ok:2/ok:0.5/ok:2", "ok:0.1/fail:0.2/ok:0.1", "raise:0.1/ok:0.1/fail:0.1",
            "ok:0.6/ok:4/crash:0.3", "ok:0.1/forget/ok:0.1", "crash:0.3/ok:0.1/ok:5"),
        "task": ("ok:0.5", "steps:0.5", "ok:2", "beat:8", "twice:0.5", "fail:0.5", "refuse:0.5", "forget", "late:11"),
        "": ("ok:0.1", "ok:0.6", "ok:2", "ok:4", "ok:9", "raise:0.2", "fail:0.1", "crash:0.3", "snooze:0.1",
            "polite:5"),
    },
    attempts=(1, 1, 2),
    enqueues=(6, 9),
    copies=(1, 1, 2, 3),
    changed=(6, 9, 12),
    outsiders=(1, 1, 2),
    cancels=(0, 1),
    retries=(0, 0, 1),
    faults=(0, 1, 2, 3),
    kinds=("kill", "stop", "freeze", "mute", "hush", "aimed", "aimed", "aimed"),
    freezes=(4.0, 12.0),
    muted=("Store.extend", "Store.report", "PlanningStore.plan"),
    aims=(
        *(("client-1", op, blow) for op in ("DataJobStore.delete", "_strike", "_resume_some", "DataJobStore.write")
            for blow in ("repeated", "lost_reply", "crash_after")),
        ("client-1", "DataJobStore.create_with", "repeated"),
        ("client-2", "_cancel_all", "crash_after"),
        ("client-2", "DataJobStore.delete", "crash_after"),
        ("client-2", "Store.enqueue", "late"),
        ("engine", "Store.report", "late"),
        ("engine", "Store.report", "repeated"),
        ("engine", "PlanningStore.plan", "late"),
        ("engine", "Store.claim_in_order", "lost_reply"),
    ),
)  # fmt: skip

ALL_THEMES: tuple[Theme, ...] = (*COORDINATION_THEMES[:1], JOBS, *COORDINATION_THEMES[1:])
"""What is new stands behind the first and takes its share from that: the seeds of all others stay what they were."""
