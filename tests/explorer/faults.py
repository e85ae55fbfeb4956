"""Planted faults: locks, looks and orders taken out of the store, each of which a meeting must bring to light.

Each is tried in a process of its own, over a copy of rota with the fault in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from tests.simulation.mutants.patches import Edit, Planted, plant

_REPOSITORY = Path(__file__).parents[2]
_PATIENCE = 240.0


class Fault(msgspec.Struct, frozen=True):
    """`meeting`: a scene, and the operations that meet there. `shows`: what the finding is called."""

    name: str
    edits: tuple[Edit, ...]
    meeting: tuple[str, ...]
    shows: str


_REPORT = "store/runs/report.py"
_LIMITS, _EXTERNAL = "store/sql/limits/limits.sql", "store/sql/external/external.sql"

FAULTS = (
    Fault(
        "leases of a batch are locked after the runs of its successes",
        (
            Edit(_REPORT, "await _locked(tx, reports) if others else {}", "{}"),
            Edit(
                _REPORT,
                "    # Fenced: what has no lease under its fence is a zombie",
                "    leases |= await _locked(tx, unsuccessful) if unsuccessful else {}\n    # Fenced: a zombie",
            ),
            Edit(_REPORT, "for report in successes if leases else ():", "for report in ():"),
        ),
        ("held", "report mixed", "reap"),
        "deadlock",
    ),
    Fault(
        "a run that is ending is restricted without a look at its end",
        (
            Edit(
                "store/sql/workers/requirements.sql",
                "where id = :id and state is null returning id",
                "where id = :id returning id",
            ),
        ),
        ("held", "report success", "restrict"),
        "not serial",
    ),
    Fault(
        "dependents are looked at without a lock",
        (
            Edit(
                _LIMITS,
                "join rota_ready w on w.run_id = rows.id order by w.run_id {for_update w};",
                "join rota_ready w on w.run_id = rows.id order by w.run_id;",
            ),
        ),
        ("held", "report success", "report the third"),
        "not serial",
    ),
    Fault(
        "limits are counted without a lock",
        (
            Edit(
                _LIMITS,
                "select l.key, l.max, l.period from {rows key text} join rota_limit l on l.key = rows.key\n"
                "order by l.key {for_update l};",
                "select l.key, l.max, l.period from {rows key text} join rota_limit l on l.key = rows.key\n"
                "order by l.key;",
            ),
        ),
        ("limited", "enqueue skip", "enqueue skip"),
        "not serial",
    ),
    Fault(
        "a step of a run is recorded without the lock of its lease",
        (
            Edit(
                _EXTERNAL,
                "where l.run_id = :id and l.fence = :fence\n{for_update l};",
                "where l.run_id = :id and l.fence = :fence;",
            ),
        ),
        ("outside", "hand over", "end step early"),
        "not serial",
    ),
    Fault(
        "an external run is ended without a lock",
        (
            Edit(
                _EXTERNAL,
                "where o.run_id = :id and o.fence = :fence\n{for_update o};",
                "where o.run_id = :id and o.fence = :fence;",
            ),
        ),
        ("outside", "finish", "finish otherwise"),
        "not serial",
    ),
    Fault(
        "whoever goes on is not told of",
        (Edit("store/runs/waits.py", "    tx.wake(*[queue for _, queue, *_ in gone_on])\n", ""),),
        ("held", "report success", "note"),
        "lost wake-up",
    ),
    Fault(
        "a job is dropped under a lock that its users share",
        (
            Edit(
                "store/sql/jobs/data_jobs.sql",
                "select version from rota_job where name = :job order by version\n{for_update};",
                "select version from rota_job where name = :job order by version;",
            ),
        ),
        ("jobs", "drop", "schedule"),
        "orphan",
    ),
    Fault(
        "what a run waits for is not reserved before it is cancelled",
        (
            Edit(
                "store/runs/cancel.py",
                "    if awaited:\n        # All of them now",
                "    if not awaited:\n        # All of them now",
            ),
        ),
        ("scheduled", "cancel second", "report first"),
        "deadlock",
    ),
)


def found(fault: Fault, database_url: str) -> str:
    """Explore the meeting over a rota with the fault; return what the explorer printed."""
    with tempfile.TemporaryDirectory(prefix="rota-fault-") as folder:
        plant(Planted(fault.name, "", fault.edits), Path(folder))
        scene, *operations = fault.meeting
        command = [sys.executable, "-m", "tests.explorer", "one", scene, *operations, "--first"]
        answer = subprocess.run(
            [*command, "--database-url", database_url],
            check=False,
            cwd=_REPOSITORY,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((folder, str(_REPOSITORY)))},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
    return answer.stdout + answer.stderr
