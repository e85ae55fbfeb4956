"""All planted bugs."""

from __future__ import annotations

from tests.simulation.mutants.bugs import (
    attempts,
    audit_trail,
    coordination,
    jobs,
    pipelines,
    queue,
    quotas,
    schedules,
    steps,
)

BUGS = (
    *attempts.BUGS,
    *queue.BUGS,
    *schedules.BUGS,
    *steps.BUGS,
    *audit_trail.BUGS,
    *coordination.BUGS,
    *quotas.BUGS,
    *pipelines.BUGS,
    *jobs.BUGS,
)
