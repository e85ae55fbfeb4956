"""A new run's row in `rota_ready`, for SQLite, which takes it value by value."""

from __future__ import annotations

from rota.core.model import NewRun


def ready_row(run: NewRun, due: int, now: int) -> tuple[object, ...]:
    return (
        run.id,
        run.queue,
        -run.priority,
        due,
        1 if due > now else 2 if run.gates else 0,
        int(run.on_lost == "fail"),
        run.job,
        run.job_version,
        run.limit_key,
    )
