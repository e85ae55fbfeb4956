"""All planted bugs."""

from __future__ import annotations

from proof.mutants import (
    attempt_bugs,
    elsewhere_bugs,
    pipeline_bugs,
    queue_bugs,
    schedule_bugs,
    scope_bugs,
    step_bugs,
    trail_bugs,
)

BUGS = (
    *attempt_bugs.BUGS,
    *queue_bugs.BUGS,
    *schedule_bugs.BUGS,
    *step_bugs.BUGS,
    *trail_bugs.BUGS,
    *elsewhere_bugs.BUGS,
    *scope_bugs.BUGS,
    *pipeline_bugs.BUGS,
)
