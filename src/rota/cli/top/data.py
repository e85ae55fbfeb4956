"""Data of `rota top`, read at one time: runs, failures, errors, queues, workers, next runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from rota.client.client import MOST_LISTED, Client
from rota.core.jobs.queues import Queue
from rota.core.monitoring.charts import Series
from rota.core.monitoring.error_groups import ErrorGroup
from rota.core.monitoring.overview import Overview
from rota.core.runs.run import Run, RunFilter
from rota.core.states import RunState
from rota.core.workers.worker import Worker
from rota.errors import UnknownRun

SHORTEST = timedelta(milliseconds=500)
"""The shortest time between two snapshots."""
LOOKED_BACK = timedelta(minutes=30)
_RUNNING = RunFilter(states=(RunState.RUNNING, RunState.WAITING, RunState.CANCELLING))
_FAILED = RunFilter(states=(RunState.FAILED, RunState.TIMED_OUT, RunState.EXPIRED))
_MOST_RUNS = 100
_WITH_STEPS = 10
_MOST_FAILURES = 30
_MOST_ERRORS = 20


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Data of one picture. `runs` are the running ones, oldest first; `failures` the newest ones.

    `errors`: the largest error groups of a day, across jobs.
    """

    overview: Overview
    series: Series
    runs: Sequence[Run] = ()
    failures: Sequence[Run] = ()
    errors: Sequence[ErrorGroup] = ()
    queues: Sequence[Queue] = ()
    workers: Sequence[Worker] = ()

    def document(self) -> dict[str, object]:
        return {"at": self.overview.at, **msgspec.structs.asdict(self)}


async def read_snapshot(client: Client) -> Snapshot:
    """Read a snapshot, one query after the other: a viewer should not use several connections."""
    overview = await client.monitoring.overview()
    series = await client.monitoring.series(overview.at - LOOKED_BACK, step="1m")
    running = await client.page(_RUNNING, limit=_MOST_RUNS)
    failed = await client.page(_FAILED, limit=_MOST_FAILURES)
    errors = await client.error_groups.list(all_jobs=True, sort="count", limit=_MOST_ERRORS)
    return Snapshot(
        overview=overview,
        series=series,
        runs=await _with_progress(
            client, sorted(running.runs, key=lambda run: (run.started_at or run.created_at, run.id))
        ),
        failures=failed.runs,
        errors=errors.items,
        queues=await _queues(client),
        workers=await client.workers.list(),
    )


async def _with_progress(client: Client, runs: list[Run]) -> list[Run]:
    """Add the progress that is computed from steps, for the first runs only."""
    return [*[await _with_steps(client, run) for run in runs[:_WITH_STEPS]], *runs[_WITH_STEPS:]]


async def _with_steps(client: Client, run: Run) -> Run:
    if run.progress is not None and run.progress.percentage is not None:
        return run
    try:
        return msgspec.structs.replace(run, progress=await client.progress(run.id))
    except UnknownRun:  # it ended and was pruned since
        return run


async def _queues(client: Client) -> list[Queue]:
    """Return the queues that are not empty, and those that are paused."""
    queues = await client.queues(limit=MOST_LISTED)
    return [queue for queue in queues if queue.running or queue.queued or queue.scheduled or queue.paused]
