"""Questions: rows become values of the model."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Pause
from rota.core.limits.limits import Gate
from rota.core.progress.notes import Progress, percentage_of, progress_of
from rota.core.runs.dependencies import is_whole
from rota.core.runs.payload import TakenResult
from rota.core.runs.run import Attempt, Measures, NewRun, Run, RunError
from rota.core.states import Outcome, RunState
from rota.errors import AmbiguousRun, UnknownRun
from rota.store.databases.database import Database, Row, Tx
from rota.store.schedules.schedule_row import decoded
from rota.values.instants import instant, maybe_instant
from rota.values.scope import Scope

T = TypeVar("T")

_HEX = "0123456789abcdef"
_SHORTEST_END = 4
_SHOWN, _NEWEST = 6, 1_000
_LOOKED_AT = 100_000
"""Scopes have no index: of so many runs those of one scope are picked out, and whoever asks cannot make it take longer.
"""


class RetryFacts(msgspec.Struct, frozen=True):
    """Parts of a retry: the old run, a copy of it, its job as it is stored, the limits of its schedule, and what its
    arguments take from other runs, if it ended before they were filled."""

    run: Run
    copy: NewRun
    job: JobDefinition | None
    schedule_gates: tuple[Gate, ...]
    taken: Sequence[TakenResult] = ()


async def get_run(tx: Tx, run_id: str) -> Run:
    rows = await tx.fetch("get_run", id=run_id)
    if not rows:
        raise UnknownRun(run_id)
    return run_of(rows[0])


async def run_within(tx: Tx, part: str, within: Scope | None) -> Run:
    """The run by its id, or by a part of it; a whole id is not searched for."""
    if not is_whole(part):
        return await get_run(tx, await find_run(tx, part, within))
    run = await get_run(tx, part)
    if within not in (None, run.scope):
        raise UnknownRun(part)
    return run


async def about(
    database: Database, part: str, within: Scope | None, question: Callable[[Tx, str], Coroutine[Any, Any, T]]
) -> T:
    """Answer a question about a run in the transaction that finds it, by its id or by a part of it."""

    async def body(tx: Tx) -> T:
        return await question(tx, await find_run(tx, part, within))

    return await database.read(body)


async def require_within(tx: Tx, run_id: str, within: Scope | None) -> None:
    """Refuse a run of another scope as if it were not there. Whoever acts on it next says if there is none."""
    if within is not None and not await of_scope(tx, [run_id], within):
        raise UnknownRun(run_id)


async def copies_of(tx: Tx, run_ids: Sequence[str]) -> dict[str, NewRun]:
    """Return copies of runs, by their ids."""
    rows = await tx.fetch("copies_of", [(id,) for id in run_ids])
    facts: list[list[Any]] = [[str(fact) if isinstance(fact, UUID) else fact for fact in row] for row in rows]
    return {id: NewRun(id, *others) for id, *others in facts}


async def copy_of(tx: Tx, run_id: str) -> NewRun:
    for copy in (await copies_of(tx, [run_id])).values():
        return copy
    raise UnknownRun(run_id)


async def metadata_of(tx: Tx, run_ids: Sequence[str]) -> list[str | None]:
    texts = {str(id): text for id, text in await tx.fetch("metadata_of", [(id,) for id in run_ids])}
    return [texts.get(id) for id in run_ids]


def _text(id: object) -> str | None:
    return None if id is None else str(id)


async def find_run(tx: Tx, part: str, within: Scope | None = None) -> str:
    """The id that begins with `part`, if exactly one does; else, among the newest, the one that ends with it.

    Runs that were enqueued together share their beginning, which is the time. `within` a scope there are no other runs:
    they are neither found, nor make anything ambiguous.
    """
    return await _find_run(tx, part, within, [])


async def _find_run(tx: Tx, part: str, within: Scope | None, newest: list[str]) -> str:
    """`newest` gets the newest ids when they are first needed: one call may name thousands of parts, and to pick out
    those of a scope takes long."""
    digits = part.replace("-", "").lower()
    if not digits or len(digits) > 32 or any(digit not in _HEX for digit in digits):
        raise UnknownRun(part)
    ids = await _beginning_with(tx, digits, within, _SHOWN)
    if not ids and _SHORTEST_END <= len(digits) < 32:
        newest += () if newest else await _newest(tx, within)
        ids = [id for id in newest if id.replace("-", "").endswith(digits)]
    if not ids:
        raise UnknownRun(part)
    if len(ids) > 1:
        raise AmbiguousRun(part, ids)
    return ids[0]


async def _newest(tx: Tx, within: Scope | None) -> list[str]:
    if within is not None:
        return await _beginning_with(tx, "", within, _NEWEST)
    return [str(id) for (id,) in await tx.fetch("newest_ids", limit=1_000)]


async def _beginning_with(tx: Tx, digits: str, within: Scope | None, most: int) -> list[str]:
    low, high = (_uuid(digits.ljust(32, filler)) for filler in "0f")
    if within is None:
        return [str(id) for (id,) in await tx.fetch("runs_by_prefix", low=low, high=high)]
    own = {"scope_kind": within.kind, "scope_id": within.id, "looked_at": _LOOKED_AT, "most": most}
    return sorted(str(id) for (id,) in await tx.fetch("own_runs_by_prefix", low=low, high=high, **own))


async def find_runs(tx: Tx, parts: Sequence[str], within: Scope | None = None) -> dict[str, str]:
    """Find many runs by parts of their ids; whole ids are looked for together."""
    # In one statement: a call may name thousands of runs, and mostly by whole ids.
    whole = [part for part in parts if is_whole(part)]
    existing = set(whole) if within is None else await of_scope(tx, whole, within)
    for part in whole:
        if part not in existing:
            raise UnknownRun(part)
    partial = [part for part in parts if part not in existing]
    newest: list[str] = []
    return {**{id: id for id in whole}, **{part: await _find_run(tx, part, within, newest) for part in partial}}


async def of_scope(tx: Tx, run_ids: Sequence[str], scope: Scope) -> set[str]:
    """Return which of these are runs of the scope."""
    sql = "select id from rota_run where {among_ids} and scope_kind = :kind and scope_id = :scope"
    rows = await tx.fetch_sql(sql, ids=",".join(run_ids), kind=scope.kind, scope=scope.id) if run_ids else []
    return {str(id) for (id,) in rows}


def _uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


async def runs_by_id(tx: Tx, run_ids: Sequence[str]) -> list[Run]:
    """Return those of these runs that are still there, newest first."""
    sql = "select {run_columns} from rota_run_now where {among_ids}"
    runs = [run_of(row) for row in await tx.fetch_sql(sql, ids=",".join(run_ids))]
    return sorted(runs, key=lambda run: run.id, reverse=True)


async def attempts(tx: Tx, run_id: str) -> list[Attempt]:
    return [_attempt(row) for row in await tx.fetch("attempts", id=run_id)]


async def attempts_of(tx: Tx, run_ids: Sequence[str]) -> dict[tuple[str, int], Attempt]:
    """Return the attempts of several runs, by run and fence."""
    rows = await tx.fetch("attempts_of", [(id,) for id in run_ids])
    return {(str(id), tried.fence): tried for id, *row in rows for tried in (_attempt(row),)}


async def job(tx: Tx, name: str) -> JobDefinition | None:
    for (definition,) in await tx.fetch("newest_job", name=name):
        return definition_in(definition)
    return None


async def jobs(tx: Tx) -> list[JobDefinition]:
    return [definition_in(text) for (text,) in await tx.fetch("newest_jobs")]


def definition_in(text: str) -> JobDefinition:
    """Decode a stored definition."""
    return msgspec.json.decode(text, type=JobDefinition)


async def queue_counts(tx: Tx) -> list[tuple[str, int, int, int]]:
    levels = await queue_levels(tx)
    return [(queue, running, queued, scheduled) for queue, (running, queued, scheduled, _) in levels.items()]


async def queue_levels(tx: Tx) -> dict[str, tuple[int, int, int, int | None]]:
    """Return how many runs of each queue run, are queued and scheduled, and since when the oldest one is queued."""
    rows = await tx.fetch("queue_counts")
    return {
        queue: (int(running), int(queued), int(scheduled), oldest) for queue, running, queued, scheduled, oldest in rows
    }


async def paused_queues(tx: Tx) -> list[Pause]:
    return [Pause(name, instant(at), by, reason) for name, at, by, reason in await tx.fetch("paused_queues")]


def run_of(row: Row) -> Run:
    (id, job, job_version, queue, priority, scope_kind, scope_id, key, state, reason, fence, attempt, max_attempts,
     payload, result, error, created_at, run_at, started_at, finished_at, retry_of, worker_id, tags, metadata,
     schedule, plan_time, covers_from, missed_count, done, summary, progress_at, cancelled_by,
     wait_since, wait_until, parent_id) = row  # fmt: skip
    return Run(
        id=str(id),
        job=job,
        job_version=job_version,
        queue=queue,
        priority=priority,
        scope=Scope(scope_kind, scope_id),
        key=key,
        state=RunState(state),
        reason=reason,
        fence=fence,
        attempt=attempt,
        max_attempts=max_attempts,
        payload=msgspec.json.decode(payload),
        result=msgspec.json.decode(result) if result else None,
        error=error_of(error),
        created_at=instant(created_at),
        run_at=instant(run_at),
        started_at=maybe_instant(started_at),
        finished_at=maybe_instant(finished_at),
        retry_of=_text(retry_of),
        worker_id=worker_id,
        tags=tuple(msgspec.json.decode(tags)) if tags else (),
        metadata=msgspec.json.decode(metadata) if metadata else {},
        schedule=schedule,
        plan_time=maybe_instant(plan_time),
        covers_from=maybe_instant(covers_from),
        missed_count=missed_count or 0,
        progress=_progress(done, summary, progress_at, RunState(state)),
        cancelled_by=cancelled_by,
        wait_since=maybe_instant(wait_since),
        wait_until=maybe_instant(wait_until),
        parent_id=_text(parent_id),
    )


def _progress(done: int | None, summary: str | None, at: int | None, state: RunState) -> Progress | None:
    if at is None:
        return None
    return progress_of(Progress(percentage=percentage_of(done), summary=summary, at=instant(at)), (), state)


def _attempt(row: Row) -> Attempt:
    no, fence, worker_id, claimed_at, lease_until, started_at, ended_at, outcome, error, measured = row
    measures = msgspec.json.decode(measured, type=Measures) if measured else Measures()
    return Attempt(
        no=no,
        fence=fence,
        worker_id=worker_id,
        claimed_at=instant(claimed_at),
        lease_until=maybe_instant(lease_until),
        started_at=maybe_instant(started_at),
        ended_at=maybe_instant(ended_at),
        outcome=Outcome(outcome) if outcome else None,
        error=error_of(error),
        cpu_time_ms=measures.cpu_time_ms,
        memory_peak_mb=measures.memory_peak_mb,
        counters=measures.counters,
    )


def error_of(text: str | None) -> RunError | None:
    return msgspec.json.decode(text, type=RunError) if text else None


async def retry_facts(tx: Tx, part: str, within: Scope | None = None) -> RetryFacts:
    run = await run_within(tx, part, within)
    for facts in (await _retry_facts(tx, [run])).values():
        return facts
    raise UnknownRun(part)


async def retry_facts_of(tx: Tx, run_ids: Sequence[str], within: Scope | None = None) -> dict[str, RetryFacts]:
    """Return the parts of the retries of those of these runs that are there, by run."""
    runs = await runs_by_id(tx, run_ids)
    return await _retry_facts(tx, [run for run in runs if within is None or run.scope == within])


async def _retry_facts(tx: Tx, runs: Sequence[Run]) -> dict[str, RetryFacts]:
    gates: dict[str | None, tuple[Gate, ...]] = {}
    for name in {run.schedule for run in runs if run.schedule}:
        for id, _, _, definition, *_ in await tx.fetch("get_schedule", name=name):
            gates[name] = decoded(definition).gates(str(id), name)
    jobs = {name: await job(tx, name) for name in {run.job for run in runs}}
    copies = await copies_of(tx, [run.id for run in runs])
    taken = await _taken_by(tx, [run.id for run in runs if run.started_at is None])
    return {
        run.id: RetryFacts(run, copies[run.id], jobs[run.job], gates.get(run.schedule, ()), taken.get(run.id, ()))
        for run in runs
        if run.id in copies  # race: a purge may have deleted it since it was read
    }


async def _taken_by(tx: Tx, run_ids: Sequence[str]) -> dict[str, list[TakenResult]]:
    """Return what the arguments of these runs, which never began, would take now."""
    taken: dict[str, list[TakenResult]] = {}
    for id, places, after, state, result in (
        await tx.fetch("results_again", [(id,) for id in run_ids]) if run_ids else ()
    ):
        taken.setdefault(str(id), []).append(TakenResult(str(after), places, state is not None, result))
    return taken
