"""The facts about an installation that `doctor` judges."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.limits.live import NO_KIND, place_of
from rota.core.limits.quotas import prefixes
from rota.core.monitoring.doctor import KIND, OperatorLimit, OperatorPause, OverdueSchedule, StuckRun, Symptoms
from rota.core.monitoring.doctor_host import DeadRows, Durability, FileFacts, FileUsers, ServerFacts, Transaction
from rota.core.schedules.backoff import cadence_warnings
from rota.store.databases.database import Database, Tx
from rota.store.ledger.explain import live_workers
from rota.store.ledger.occurrences import snapshot
from rota.store.limits.live import live_limits
from rota.store.limits.quotas import decoded
from rota.store.schedules.schedule_row import readable
from rota.values.scope import Scope, kind_text, scope_text

if TYPE_CHECKING:
    from rota.store.databases.sqlite.sqlite import SqliteDatabase


_LATE = 10_000_000
_MOST = 100
_UNTOLD = 60_000_000
_ATTEMPTS = 10_000
_SCHEDULES = 1_000


async def symptoms(tx: Tx, silence: int, stuck_for: int) -> Symptoms:
    """Read symptoms as of one instant.

    `silence`: how long a living worker may be silent. `stuck_for`: how long ago a lease must have expired. Both are
    microseconds.
    """
    await snapshot(tx)
    ((now,),) = await tx.fetch("now")
    overdue = await tx.fetch("overdue_schedules", late=_LATE, limit=_MOST)
    stuck = await tx.fetch("stuck_leases", late=stuck_for, limit=_MOST)
    ((waits,),) = await tx.fetch("orphaned_waits")
    ((limits,),) = await tx.fetch("orphaned_limits")
    ((signals,),) = await tx.fetch("untold_signals", late=_UNTOLD)
    scopes = await _paused_scopes(tx)
    return Symptoms(
        now=int(now),
        overdue=[OverdueSchedule(*row) for row in overdue],
        stuck=[StuckRun(str(run_id), worker_id, expires_at) for run_id, worker_id, expires_at in stuck],
        queues={queue: int(count) for queue, count in await tx.fetch("claimable_by_queue")},
        jobs={job: int(count) for job, count in await tx.fetch("claimable_by_job")},
        scopes={pause.name: waiting for pause, waiting in scopes},
        held=[
            *(OperatorPause(*row) for row in await tx.fetch("all_pauses", limit=_MOST)),
            *(pause for pause, _ in scopes),
        ],
        live_limits=[
            OperatorLimit(thing, name, limit, await _waiting(tx, prefixes(NO_KIND, place_of(thing, name).id)))
            for (thing, name), limit in list((await live_limits(tx)).items())[:_MOST]
        ],
        workers=await live_workers(tx, silence),
        orphaned_waits=int(waits),
        orphaned_limits=int(limits),
        signals=int(signals),
        cadences=await _cadences(tx, int(now)),
        begun_and_skipped=[str(id) for (id,) in await tx.fetch("begun_and_skipped", looked=_ATTEMPTS, limit=_MOST)],
    )


async def _paused_scopes(tx: Tx) -> list[tuple[OperatorPause, int]]:
    """Return paused scopes and kinds of scopes, each with how many runs wait because of it."""
    paused = []
    for kind, id, text, _ in await tx.fetch("paused_quotas", limit=_MOST):
        quota, name = decoded(text), scope_text(Scope(kind, id)) if id else kind_text(kind)
        pause = OperatorPause("scope" if id else KIND, name, quota.since, quota.by, quota.reason)
        paused.append((pause, await _waiting(tx, prefixes(kind, id), exact=bool(id))))
    return paused


async def _waiting(tx: Tx, keys: Sequence[str], *, exact: bool = True) -> int:
    """Count runs that wait under limits with these keys, or with keys that begin so."""
    ((count,),) = await tx.fetch("waiting_under_keys", first=keys[0], second=keys[1], exact=int(exact))
    return int(count)


async def _cadences(tx: Tx, now: int) -> list[tuple[str, str]]:
    """Return warnings about the cadences of some schedules: an installation may have thousands."""
    warnings = []
    for name, text, job_text in await tx.fetch("schedules_with_jobs", limit=_SCHEDULES):
        if (definition := readable(text)) is not None:
            job = msgspec.json.decode(job_text, type=JobDefinition)
            warnings += [(name, warning) for warning in cadence_warnings(definition, job, name, now)]
    return warnings


def sqlite_library() -> str:
    import apsw  # a program that asks a server only has no use for it

    return str(apsw.sqlite_lib_version())


async def planned_with(database: Database) -> str | None:
    """Return the newest time zone data that a schedule was planned with."""

    async def body(tx: Tx) -> str | None:
        ((newest,),) = await tx.fetch("newest_zone_data")
        return None if newest is None else str(newest)

    return await database.read(body)


async def file_vitals(database: SqliteDatabase) -> FileFacts:
    return await asyncio.to_thread(_measured, database.path)


async def file_users(database: SqliteDatabase) -> FileUsers | None:
    from rota.store.databases.sqlite.file_users import users_of  # loads apsw, as above

    return await asyncio.to_thread(users_of, database.path)


def _measured(name: str) -> FileFacts:
    path = Path(os.path.realpath(name))
    return FileFacts(_size(path), _size(path.with_name(f"{path.name}-wal")), shutil.disk_usage(path.parent).free)


def _size(path: Path) -> int:
    """Return the file's size, 0 if it does not exist: SQLite deletes the WAL with the last connection."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


async def server_vitals(database: Database) -> ServerFacts:
    async def body(tx: Tx) -> ServerFacts:
        ((version, number, size, autovacuum),) = await tx.fetch("server_vitals")
        transactions = await tx.fetch("oldest_transaction")
        return ServerFacts(
            version=str(version).partition(" ")[0],
            major=int(number) // 10_000,
            size=int(size),
            autovacuum=autovacuum == "on",
            unvacuumed=[str(table) for (table,) in await tx.fetch("unvacuumed_tables")],
            durability=Durability(*(await tx.fetch("durability"))[0]),
            oldest=next((_transaction(*row) for row in transactions), None),
            dead=[DeadRows(str(table), int(live), int(dead)) for table, live, dead in await tx.fetch("dead_rows")],
        )

    return await database.read(body)


def _transaction(pid: int, application: str, state: str, micros: int) -> Transaction:
    return Transaction(int(pid), application, state, timedelta(microseconds=int(micros)))
