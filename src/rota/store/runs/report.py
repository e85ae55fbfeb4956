"""The end of attempts: workers' reports, and leases taken away. Read, decide in core, apply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from rota.core.ledger.audit import REAPER
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import (
    End,
    EndedRun,
    Lease,
    Report,
    Requeue,
    SettledAttempt,
    after_report,
    is_handed_over,
)
from rota.core.runs.run import RunError
from rota.core.schedules.backoff import adapted_backoff
from rota.core.states import Outcome, RunState
from rota.core.workers.requirements import REPLICA
from rota.store.databases.database import Completed, Row, Tx
from rota.store.external import deadlines, handover
from rota.store.jobs import pipeline_stages
from rota.store.ledger import audit
from rota.store.limits import slots
from rota.store.runs.end import EndedRuns, EndEffects, end
from rota.store.schedules.schedule_row import readable
from rota.store.workers import replicas


class Reported(msgspec.Struct, frozen=True):
    """Result of reports. `refused`: those whose fence was not current.

    `settled`: attempts that were not the success of their runs, and how these ended with them, if they did. `in_vain`:
    how runs ended that needed one of these to go well.
    """

    refused: list[Report]
    settled: list[SettledAttempt] = []
    in_vain: list[EndedRun] = []


class Reaped(msgspec.Struct, frozen=True):
    """Leases that were taken away. `settled`: what became of their runs; `in_vain`: how runs ended that needed them."""

    settled: list[SettledAttempt] = []
    in_vain: list[EndedRun] = []

    @property
    def requeued(self) -> int:
        return sum(attempt.state is None for attempt in self.settled)

    @property
    def ended(self) -> int:
        return len(self.settled) - self.requeued


class _Ending(msgspec.Struct, frozen=True):
    lease: Lease
    report: Report
    next: Requeue | End


Leases = dict[tuple[str, int], Lease]
"""Leases that this transaction has locked, by run and fence, until they end."""


async def report(tx: Tx, reports: Sequence[Report]) -> Reported:
    freed: list[Row] = []
    # Most reports are successes of whole runs: their statement takes the leases by itself. Of others, all leases are
    # locked before anything else: by the second statement of ends, the first has runs and dependents, which whoever has
    # a later lease waits for (deadlock with the reaper).
    others = [report for report in reports if report.part or report.outcome is not Outcome.SUCCEEDED]
    leases = await _locked(tx, reports) if others else {}
    results = [await _report_each_run_once(tx, turn, leases, freed) for turn in _turns(reports)]
    settled = [attempt for result in results for attempt in result.settled]
    # Limits are last in the lock order, and opened once for all turns: in between, a lease of the next turn would be
    # locked after a limit.
    await slots.open_limits(tx, freed)
    in_vain = [run for result in results for run in result.in_vain]
    return Reported([stale for result in results for stale in result.refused], settled, in_vain)


def _turns(reports: Sequence[Report]) -> Iterator[Sequence[Report]]:
    """Split reports so that each run occurs once in a turn: the first report of it counts, the others meet what it left
    behind.
    """
    while reports:
        turn = {report.run_id: report for report in reversed(reports)}
        if len(turn) == len(reports):
            yield reports
            return
        yield list(turn.values())
        reports = [report for report in reports if report is not turn[report.run_id]]


async def _report_each_run_once(tx: Tx, batch: Sequence[Report], leases: Leases, freed: list[Row]) -> Reported:
    reports = await pipeline_stages.advance(tx, batch, leases)
    successes = [report for report in reports if report.outcome is Outcome.SUCCEEDED]
    unsuccessful = [report for report in reports if report.outcome is not Outcome.SUCCEEDED]
    # Their statement checks the fence by itself. Only the others are read and decided in Python.
    done = await tx.hot.complete(successes) if successes else Completed(set(), [])
    settled = done.ids
    # Taken out here and below: a second report of the same run meets what this one leaves behind.
    for report in successes if leases else ():
        if report.run_id in settled:
            del leases[report.run_id, report.fence]
    followed = dict.fromkeys(done.followed, RunState.SUCCEEDED.value)
    freed += done.freed
    freed += (await end(tx, EndedRuns(followed, signalled=True))).freed
    endings: list[_Ending] = []
    vain: list[EndedRun] = []
    # Fenced: what has no lease under its fence is a zombie's report, or one that is repeated (`_not_repeated`).
    current = [report for report in unsuccessful if (report.run_id, report.fence) in leases]
    if current:
        adapted = await _adapted(tx, current)
        pairs = [(leases.pop((one.run_id, one.fence)), await handover.unless_done(tx, one)) for one in adapted]
        await handover.hand_over(tx, [(lease, report) for lease, report in pairs if is_handed_over(lease, report)])
        endings = [_ending(lease, report) for lease, report in pairs if not is_handed_over(lease, report)]
        aftermath = await _apply(tx, endings)
        freed += aftermath.freed
        vain = aftermath.in_vain
        settled |= {report.run_id for report in current}
    unsettled = [report for report in batch if report.run_id not in settled]
    return Reported(await _not_repeated(tx, unsettled), [_settled(ending) for ending in endings], vain)


async def _adapted(tx: Tx, reports: Sequence[Report]) -> Sequence[Report]:
    """Adapt the default backoff of scheduled runs to the next plan times of their schedules.

    Their rows are read and not locked: planning holds cursors while it marks runs.
    """
    adapting = [(report.run_id,) for report in reports if report.adapts and report.retry_in]
    if not adapting:
        return reports
    rests: dict[str, Callable[[int], int]] = {}
    for run_id, name, text, now in await tx.fetch("schedules_of_retries", adapting):
        if (definition := readable(text)) is not None:
            rests[str(run_id)] = partial(adapted_backoff, times=definition.times(name), now=now)
    return [
        msgspec.structs.replace(report, retry_in=rests[report.run_id](report.retry_in))
        if report.adapts and report.retry_in and report.run_id in rests
        else report
        for report in reports
    ]


async def _locked(tx: Tx, reports: Sequence[Report]) -> Leases:
    held = sorted({(report.run_id, report.fence) for report in reports})
    leases = map(_lease, await tx.fetch("lock_leases", held))
    return {(lease.run_id, lease.fence): lease for lease in leases}


async def _not_repeated(tx: Tx, reports: list[Report]) -> list[Report]:
    """A report that says again what was recorded under its fence gets the first answer; the rest are stale."""
    if not reports:
        return []
    rows = await tx.fetch("attempt_outcomes", [(report.run_id, report.fence) for report in reports])
    recorded = {(str(id), fence): outcome for id, fence, outcome in rows}
    unknown = [report for report in reports if recorded.get((report.run_id, report.fence)) != report.outcome]
    handed = await handover.handed_over_before(tx, unknown) | await pipeline_stages.advanced_before(tx, unknown)
    return [report for report in unknown if (report.run_id, report.fence) not in handed]


async def reap(tx: Tx, limit: int) -> Reaped:
    """Take expired leases, and those whose cancel grace is over, away from their holders; and from those outside."""
    # Skips locked rows: a report that is under way counts, however late. Leases before external runs, as a cancel.
    leases = [_lease(row) for row in await tx.fetch("lock_expired", limit=limit)]
    overdue = [(lease, await deadlines.overdue_report(tx, lease) or _lost_report(lease)) for lease in leases]
    overdue += await handover.take_overdue(tx, limit)
    adapted = await _adapted(tx, [report for _, report in overdue])
    endings = [_ending(lease, report) for (lease, _), report in zip(overdue, adapted, strict=True)]
    aftermath = await _apply(tx, endings)
    await slots.open_limits(tx, aftermath.freed)
    await _note_losses(tx, leases)
    if endings:  # last: the next reaper waits for this row
        await tx.fetch("note_taken_away", leases=len(endings))
    return Reaped([_settled(ending) for ending in endings], aftermath.in_vain)


async def _note_losses(tx: Tx, leases: Sequence[Lease]) -> None:
    """Note which runs each worker lost: nothing else tells later what a worker held when it went silent."""
    lost: dict[str, list[str]] = {}
    for lease in leases:
        lost.setdefault(lease.worker_id, []).append(str(lease.run_id))
    for worker_id, runs in sorted(lost.items()):
        await audit.note(tx, "worker", worker_id, "lost_runs", REAPER, {"runs": runs})


async def take_away(tx: Tx, leases: Sequence[tuple[str, int]]) -> None:
    """Take runs from workers that may not have them any more, as if these had handed them back."""
    if not leases:
        return
    # Fenced, in the order of ids, as a report: a lease that ended meanwhile is not found.
    rows = await tx.fetch("lock_leases", sorted(leases))
    endings = [_ending(lease, Report(lease.run_id, lease.fence, Outcome.HANDED_BACK)) for lease in map(_lease, rows)]
    await slots.open_limits(tx, (await _apply(tx, endings)).freed)


def _settled(ending: _Ending) -> SettledAttempt:
    outcome = Outcome.SUCCEEDED if ending.report.advances else ending.report.outcome
    state = ending.next.state if isinstance(ending.next, End) else None
    return SettledAttempt(outcome, state, ending.lease.job, ending.lease.queue)


def _ending(lease: Lease, report: Report) -> _Ending:
    following = after_report(lease, report)
    if report.error is None and isinstance(following, End) and following.state is RunState.EXPIRED:
        report = msgspec.structs.replace(report, error=_stale(f"worker {lease.worker_id} stopped before it was done"))
    return _Ending(lease, report, following)


def _lost_report(lease: Lease) -> Report:
    message = f"worker {lease.worker_id} did not renew its lease"
    if lease.cancel_at is not None:
        message = f"the run was asked to stop, and worker {lease.worker_id} did not say within its grace that it has"
    return Report(lease.run_id, lease.fence, Outcome.LOST, error=_stale(message))


def _stale(message: str) -> str:
    return stored_error(RunError(type="LeaseLost", message=message, code="stale_timeout"))


async def _apply(tx: Tx, endings: list[_Ending]) -> EndEffects:
    """Write the ends of attempts whose leases are locked; the runs of some wait again, those of others end."""
    if not endings:
        return EndEffects()
    # Lease or ready row, run, dependents, limits: the order of every end.
    await tx.fetch("drop_leases", [(ending.lease.run_id, ending.lease.fence) for ending in endings])
    await tx.fetch("record_attempts", [_attempt_row(ending) for ending in endings])
    again = [
        (e.lease.run_id, e.next.delay, e.next.attempt, e.next.fence, int(e.next.keeps_place))
        for e in endings
        if isinstance(e.next, Requeue)
    ]
    freed_replicas = [e.lease.run_id for e in endings if _frees_replica(e)]
    if freed_replicas:
        # Before `requeue`, which lets a replica wait for the name that it still has.
        await replicas.free(tx, freed_replicas)
    if again:
        tx.wake(*[queue for (queue,) in await tx.fetch("requeue", again)])
    over = [_end_row(e.lease, e.report, e.next) for e in endings if isinstance(e.next, End)]
    if over:
        await tx.fetch("end_runs", over)
    states = {e.lease.run_id: e.next.state.value for e in endings if isinstance(e.next, End)}
    requeued = [(e.lease.run_id, e.lease.fence) for e in endings if isinstance(e.next, Requeue)]
    return await end(tx, EndedRuns(states, held=list(states), again=requeued))


def _frees_replica(ending: _Ending) -> bool:
    """A failed attempt is tried again by the same worker."""
    taken_away = ending.report.outcome in (Outcome.LOST, Outcome.HANDED_BACK)
    return taken_away and (ending.lease.need or "").startswith(REPLICA) and isinstance(ending.next, Requeue)


def _attempt_row(ending: _Ending) -> Row:
    lease, report = ending.lease, ending.report
    return (
        lease.run_id,
        lease.fence,
        lease.attempt,
        lease.worker_id,
        lease.claimed_at,
        _busy(report),
        report.outcome.value,
        report.error,
        report.measures,
        *_state_after(ending.next),
    )


def _state_after(following: Requeue | End) -> tuple[str, int | None]:
    """The state that the run is in now, and for how long if it is not due: its trail is read off this."""
    if isinstance(following, End):
        return following.state.value, None
    return (RunState.SCHEDULED.value, following.delay) if following.delay > 0 else (RunState.QUEUED.value, None)


def _end_row(lease: Lease, report: Report, end: End) -> Row:
    result = report.result if end.state is RunState.SUCCEEDED else None
    return (
        lease.run_id,
        end.state.value,
        lease.attempt,
        end.fence,
        _busy(report),
        lease.worker_id,
        result,
        report.error,
    )


def _busy(report: Report) -> int | None:
    """Return how long the attempt took (µs); None if it was lost, since nobody knows whether it began."""
    return None if report.outcome is Outcome.LOST or not report.began else report.busy


def _lease(row: Row) -> Lease:
    run_id, *facts = row
    return Lease(str(run_id), *facts)
