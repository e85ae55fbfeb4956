"""A new run's row in `rota_ready`, as SQLite takes it: value by value."""

from __future__ import annotations

from rota.core.model import NewRun


def hold_of(early: bool, limited: bool) -> int:
    """What holds a run back that waits for no other: its time, its limits."""
    if limited:
        return 4 if early else 2
    return 1 if early else 0


def ready_row(run: NewRun, due: int, now: int) -> tuple[object, ...]:
    return (
        run.id,
        run.queue,
        -run.priority,
        due,
        hold_of(due > now, bool(run.gates)),
        int(run.on_lost == "fail"),
        run.job,
        run.job_version,
        run.limit_key,
    )
