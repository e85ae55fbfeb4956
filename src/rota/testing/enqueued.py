"""Was it enqueued? Asked of `inline(app)` inside its block, of the database otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.client import MOST_LISTED
from rota.core.model import Run, RunFilter
from rota.job import Job
from rota.testing.inline import InlineRun, inlined_of


def assert_enqueued(job: Job[..., Any], /, **payload: Any) -> Run | InlineRun:
    """The newest run of `job` whose payload has these values; an AssertionError that lists the others if none has."""
    wanted = msgspec.to_builtins(payload)
    runs = _newest_first(job)
    for run in runs:
        if all(name in run.payload and run.payload[name] == value for name, value in wanted.items()):
            return run
    raise AssertionError(f"{job.name!r} was not enqueued with {wanted}; it was enqueued {_listed(runs)}")


def _newest_first(job: Job[..., Any]) -> Sequence[Run | InlineRun]:
    inlined = inlined_of(job.app)
    if inlined is None:
        return job.app.blocking.list(RunFilter(job=job.name), limit=MOST_LISTED)
    return [run for run in reversed(inlined.runs) if run.job == job.name]


def _listed(runs: Sequence[Run | InlineRun]) -> str:
    return "with " + ", ".join(str(run.payload) for run in runs) if runs else "not at all"
