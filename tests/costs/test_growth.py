"""No operation costs more because there is more of what it is not about, on both databases."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.costs.crowd import SMALL
from tests.costs.growth import Grown, postgres_growth, sqlite_growth
from tests.costs.operations import OPERATIONS
from tests.support.databases.postgres import all_binaries
from tests.support.forms import with_long_form

pytestmark = pytest.mark.timeout(3_600)  # for the long form

VERSIONS = all_binaries()
FACTORS = with_long_form([100], [1_000])
"""A hundred thousand runs wait and as many have ended; in the long form a million."""


class Reason(NamedTuple):
    """Why an operation costs more, and the tables of which it may read more."""

    words: str
    tables: set[str]


_LIVE = {"rota_ready", "rota_lease", "rota_run"}  # of runs that are under way, those that are leased
_WAITING = Reason("counts what waits: an index by job would be written by each enqueue and each claim", _LIVE)
_OF_A_JOB = Reason(_WAITING.words, _LIVE | {"rota_schedule", "rota_cursor"})
_LEASES = Reason("goes through leases: an index by time or worker would be written by each heartbeat", {"rota_lease"})
_ALL_WORKERS = Reason("is about all workers", {"rota_worker"})
_SILENT = Reason("looks for workers that are silent, and events that are old", {"rota_worker"})
_OVERVIEW = Reason(
    "counts what waits, and schedules; and looks at the newest failures, up to a limit",
    _LIVE | {"rota_schedule", "rota_cursor", "rota_worker", "rota_fault"},
)
GROWING = {
    "reap": _LEASES,
    "reap, nothing expired": _LEASES,
    "tidy": Reason("goes through limits in turn, a bite at a time: a small crowd is less than a bite", {"rota_limit"}),
    "count": _SILENT,
    "prune": _SILENT,
    "create a job": _WAITING,
    "GET /jobs": _WAITING,
    "GET /jobs/{name}": _OF_A_JOB,
    "GET /jobs/{name}/status": _OF_A_JOB,
    "GET /jobs/{name}/stats": _OF_A_JOB,
    "GET /jobs:stats": Reason(
        "counts what waits, and what is not counted yet, of all jobs of the page", _OF_A_JOB.tables | {"rota_uncounted"}
    ),
    "GET /queues": Reason("counts what waits, and names the queues of all jobs", _LIVE | {"rota_job"}),
    "GET /overview": _OVERVIEW,
    "GET /attention": _OVERVIEW,
    "GET /runs/{id}/explain": _ALL_WORKERS,
    "GET /schedules/{name}/explain": _ALL_WORKERS,
    "GET /workers": Reason(_ALL_WORKERS.words, {"rota_worker", "rota_lease"}),
    "GET /workers/{id}": Reason(_LEASES.words, {"rota_lease", "rota_worker"}),
    "GET /timeline": Reason(
        "shows what went on in a day, in which there is more",
        {"rota_run", "rota_attempt", "rota_lease", "rota_schedule", "rota_cursor"},
    ),
    "GET /upcoming": Reason(
        "lists the schedules and waiting runs of the next hour, of which there are more, up to a limit",
        {"rota_schedule", "rota_cursor", "rota_ready", "rota_run"},
    ),
    "GET /jobs/{name}/executions": Reason(
        "counts those of the newest runs of the job, ten thousand at most", {"rota_run", "rota_attempt"}
    ),
    "GET /executions/{id}": Reason(
        "counts the job's runs of the last half hour, of which the trial makes more: older numbers are known",
        {"rota_run"},
    ),
    "GET /error-groups": Reason("groups the failures of a day, of which there are more", {"rota_fault", "rota_run"}),
}
"""Operations that may cost more."""


def is_expected(line: Grown) -> bool:
    return line.operation in GROWING and line.tables <= GROWING[line.operation].tables


def unexpected(lines: Iterable[Grown]) -> str:
    return "\n".join(str(line) for line in lines if not is_expected(line))


@pytest.mark.parametrize("factor", FACTORS)
def test_no_operation_costs_more_beside_a_crowd_on_sqlite(
    factor: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = unexpected(sqlite_growth(tmp_path, monkeypatch, factor))
    if problems:
        pytest.fail(problems)


@pytest.mark.postgres
@pytest.mark.skipif(not VERSIONS, reason="no binaries of PostgreSQL")
@pytest.mark.parametrize("factor", FACTORS)
def test_no_operation_costs_more_beside_a_crowd_on_postgres(factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = postgres_growth(monkeypatch, factor, binaries=VERSIONS[max(VERSIONS)], expected=is_expected)
    if problems := unexpected(lines):
        pytest.fail(problems)
    assert GROWING.keys() - {line.operation for line in lines} == set(), "no longer needed"


def test_reasons_are_of_operations_that_exist() -> None:
    assert GROWING.keys() - {operation.name for operation in OPERATIONS} == set()
    assert SMALL.times(100).ended == 100_000
