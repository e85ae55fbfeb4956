"""Acts of external parties: each act under the fence of its run, wherever that is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from rota.core.external.external import ExternalReport, StepReport
from rota.core.jobs.job import is_external
from rota.core.jobs.pipelines import within
from rota.core.progress.notes import LogNote, Notes, ProgressNote, StepNote
from rota.core.progress.steps import MOST_STEPS, StepState, definition_of, number_of
from rota.core.runs.claim import Claim
from rota.core.runs.error_fingerprint import stored_error
from rota.core.runs.outcome import Report
from rota.core.runs.redaction import without_secrets
from rota.core.runs.run import RunError
from rota.core.states import Outcome, RunState
from rota.core.workers.requirements import Requirements
from rota.core.workers.worker import Pace, WorkerInfo, WorkerState, read_asked
from rota.errors import AlreadyReported, Invalid, LeaseLost, NotAsked, NotHandedOver, UnknownJob, UnknownRun
from rota.store.databases.database import Database, Tx
from rota.store.external import deadlines, handover
from rota.store.external.handover import HeldRun
from rota.store.progress import notes
from rota.store.runs import read
from rota.store.runs import report as reports
from rota.store.runs.report import Reported
from rota.store.workers import requirements
from rota.store.workers.workers import save_worker
from rota.values.durations import in_micros

Results = dict[str, str | None]
"""JSON, by step."""

_NOT_OPENED = (None, None, None, None)
_REPORTABLE = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED)


class Ended(msgspec.Struct, frozen=True):
    """`state`: what that made of the run; `report` and `reported`, if it was not said before."""

    state: RunState
    report: Report | None = None
    reported: Reported | None = None


class HeartbeatAnswer(msgspec.Struct, frozen=True):
    """`until` (µs): the end of the lease, or the deadline."""

    cancelling: bool
    until: int


class Arrival(msgspec.Struct, frozen=True):
    """External worker that arrives. `versions` are those of the jobs that it may claim, unless it was asked to drain or
    to stop (not `may_claim`). `lost` are reports on leases that were handed back, with what came of them."""

    versions: dict[str, int]
    may_claim: bool
    requirements: dict[str, Requirements]
    lost: Sequence[Report] = ()
    reported: Reported | None = None


class Assigned(msgspec.Struct, frozen=True):
    """Claimed runs, by id: until when (µs) each lease lasts, and results of steps done before."""

    until: dict[str, int]
    steps: dict[str, Results]


class ExternalStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def arrive(
        self, worker: WorkerInfo, jobs: Sequence[str] | None, held: Collection[tuple[str, int]] | None
    ) -> Arrival:
        """Show the worker among the others from now on, and return what it needs to claim.

        `jobs` None: every external job. With `held`, hand back leases of the worker that are not among them.
        """

        async def body(tx: Tx) -> Arrival:
            versions = await _versions(tx, jobs)
            info = msgspec.structs.replace(worker, jobs=tuple(versions))
            # Saved twice if it was asked to drain or to stop: only the first answer tells.
            state = read_asked(await save_worker(tx, info)).state
            if state is not WorkerState.WORKING:
                await save_worker(tx, msgspec.structs.replace(info, state=state))
            labels = msgspec.json.encode(info.labels).decode()
            await tx.fetch("describe_worker", id=info.id, labels=labels, app_version=info.app_version)
            lost = [] if held is None else await _unknown_leases(tx, info.id, held)
            # Leases after the worker's row, as when they are extended; limits are last.
            reported = await reports.report(tx, lost) if lost else None
            return Arrival(versions, state is WorkerState.WORKING, await requirements.known(tx), lost, reported)

        return await self._database.transact(body)

    async def beat(self, run_id: str, fence: int, lease: int) -> HeartbeatAnswer:
        """`lease` (µs) for those that did not say how long theirs is. A deadline stays where it is."""
        return await self._database.transact(lambda tx: _beat(tx, run_id, fence, lease))

    async def progress(
        self, run_id: str, fence: int, lease: int, done: int | None, summary: str | None
    ) -> HeartbeatAnswer:
        """Write progress. What is not given stays as it was."""

        async def body(tx: Tx) -> HeartbeatAnswer:
            answer = await _beat(tx, run_id, fence, lease)
            for old_done, old_summary in await tx.fetch("said_progress", id=run_id, fence=fence):
                note = ProgressNote(run_id, fence, old_done if done is None else done, summary or old_summary)
                break
            else:
                note = ProgressNote(run_id, fence, done, summary)
            # Refused under the fence that was current a statement ago: the run ended in between.
            if await notes.write(tx, Notes(progress=(note,))):
                raise await _stale(tx, run_id, fence)
            return answer

        return await self._database.transact(body)

    async def step(self, run_id: str, fence: int, lease: int, report: StepReport) -> StepState:
        """The state that the step is in: what is recorded as done stays so. One that is waited for ends the wait.

        A report on a step is a heartbeat if the steps of the job have timeouts: one that has ended in time must not
        leave a lease that is as short as its own.
        """

        async def body(tx: Tx) -> StepState:
            # Fenced and locked until the commit: of two requests for one step, the second sees what the first recorded.
            held = await handover.lock(tx, run_id, fence)
            opened = {id: facts for id, *facts in await tx.fetch("opened_steps", id=run_id)}
            qualified = msgspec.structs.replace(report, id=within(held.part if held else None, report.id))
            _, was, by, _ = opened.get(qualified.id, _NOT_OPENED)
            # Repeated after a lost answer, perhaps when the run is not theirs any more: a recorded success is confirmed
            # before a stale fence is refused.
            if was == StepState.SUCCEEDED and (held is not None or (by == fence and qualified.state == was)):
                return StepState.SUCCEEDED
            if held is None:
                raise await _stale(tx, run_id, fence)
            definition_of(held.definition.steps, report.id)
            if qualified.id not in opened and len(opened) >= MOST_STEPS:
                raise Invalid(f"a run has at most {MOST_STEPS} steps")
            if held.waits and held.step == qualified.id and qualified.state is StepState.SUCCEEDED:
                await _end(tx, held, ExternalReport(Outcome.SUCCEEDED, qualified.result))
                return StepState.SUCCEEDED
            note = _step_note(held, qualified, opened, await _stored(tx, run_id, qualified.error))
            await notes.write(tx, Notes(steps=(note,)))
            if await deadlines.follow_steps(tx, held):
                await _beat(tx, run_id, fence, lease)
            return qualified.state

        return await self._database.transact(body)

    async def say(self, run_id: str, fence: int, lines: str, no: int | None, limit: int) -> None:
        """Under a number of its own, so that lines said again with it are not there twice. Old ones make room."""

        async def body(tx: Tx) -> None:
            # Under the lock: two requests at once would compute the same number, and each make room for itself alone.
            held = await _lock(tx, run_id, fence)
            sizes = {number: int(size) for number, size in await tx.fetch("log_sizes", id=run_id, fence=fence)}
            own = max(sizes, default=0) + 1 if no is None else no
            total = sum(sizes.values()) + len(lines)
            drops = []
            for number in sorted(sizes):
                if total <= limit or number == own:
                    break
                total -= sizes[number]
                drops.append(number)
            note = LogNote(run_id, fence, held.lease.attempt, own, lines, tuple(drops))
            await notes.write(tx, Notes(logs=(note,)))

        await self._database.transact(body)

    async def finish(self, run_id: str, fence: int, ending: ExternalReport) -> Ended:
        """Said again, it gets the first answer; said otherwise, it is refused."""

        async def body(tx: Tx) -> Ended:
            held = await handover.lock(tx, run_id, fence)
            # Not held under this fence: said before and repeated, or taken away meanwhile. What was recorded decides.
            if held is None:
                return Ended(await _first_answer(tx, run_id, fence, ending.outcome))
            if not held.waits and not is_external(held.definition.kind):
                raise NotHandedOver(run_id, held.lease.worker_id)
            if ending.outcome is Outcome.CANCELLED and (
                held.lease.cancel_at is None or await deadlines.is_shielded(tx, held)
            ):
                raise NotAsked(run_id)
            report, reported = await _end(tx, held, ending)
            return Ended(_state_after(report, reported), report, reported)

        return await self._database.transact(body)


async def _lock(tx: Tx, run_id: str, fence: int) -> HeldRun:
    held = await handover.lock(tx, run_id, fence)
    if held is None:
        raise await _stale(tx, run_id, fence)
    return held


async def _stale(tx: Tx, run_id: str, fence: int) -> LeaseLost | UnknownRun:
    for _, _, state, _, _ in await tx.fetch("recorded_end", id=run_id, fence=fence):
        return LeaseLost(run_id, fence, state)
    return UnknownRun(run_id)


async def assigned(tx: Tx, claims: Sequence[Claim]) -> Assigned:
    """Give leases just taken their deadlines. Return until when each lasts, and results of steps done before.

    In the transaction of the claim: no heartbeat extends a lease without its deadline.
    """
    if not claims:
        return Assigned({}, {})
    await deadlines.begin(tx, claims)
    until = {str(id): at for id, at in await tx.fetch("leases_until", [(it.run_id, it.fence) for it in claims])}
    steps: dict[str, Results] = {}
    for run_id, id, result in await tx.fetch("done_steps", [(claim.run_id,) for claim in claims]):
        steps.setdefault(str(run_id), {})[id] = result
    return Assigned(until, steps)


async def _versions(tx: Tx, jobs: Sequence[str] | None) -> dict[str, int]:
    """Return external jobs with their newest versions. Python workers know their jobs; for external ones, the database
    does."""
    external = {str(name): int(version) for name, version in await tx.fetch("external_jobs")}
    if jobs is None:
        return external
    for job in jobs:
        if job not in external:
            if await read.job(tx, job) is None:
                raise UnknownJob(job, external)
            raise Invalid(f"job {job!r} is not external", hint="Python workers run it; claim only external jobs")
    return {job: external[job] for job in jobs}


async def _unknown_leases(tx: Tx, worker_id: str, held: Collection[tuple[str, int]]) -> list[Report]:
    """Return reports that hand back leases of a worker which it does not know: the answer to their claim got lost."""
    leases = [(str(id), fence) for id, fence in await tx.fetch("leases_of_worker", worker_id=worker_id)]
    return [Report(*lease, Outcome.HANDED_BACK, began=False) for lease in leases if lease not in held]


async def _beat(tx: Tx, run_id: str, fence: int, lease: int) -> HeartbeatAnswer:
    # Not locked: `beat` checks the fence once more, in the update itself. If the run was handed over in between, the
    # last statement finds it.
    for worker_id, settings in await tx.fetch("pace_of_lease", id=run_id, fence=fence):
        length = in_micros(msgspec.json.decode(settings, type=Pace).lease) if settings else lease
        for until, cancelling in await tx.fetch("beat", id=run_id, fence=fence, lease=length):
            await tx.fetch("seen_worker", id=worker_id)
            return HeartbeatAnswer(bool(cancelling), until)
    for until, cancelling in await tx.fetch("beat_outside", id=run_id, fence=fence):
        return HeartbeatAnswer(bool(cancelling), until)
    raise await _stale(tx, run_id, fence)


def _step_note(
    held: HeldRun, report: StepReport, opened: Mapping[str, Sequence[object]], error: str | None = None
) -> StepNote:
    lease = held.lease
    no, _, fence, age = opened.get(report.id, _NOT_OPENED)
    no = number_of(lease.fence, len(opened) + 1) if no is None else no
    began = age if fence == lease.fence else None if report.state is StepState.SKIPPED else 0
    return StepNote(
        lease.run_id,
        lease.fence,
        lease.attempt,
        report.id,
        int(str(no)),
        report.state,
        None if began is None else max(0, int(str(began))),
        result=report.result,
        error=error,
    )


async def _stored(tx: Tx, run_id: str, error: RunError | None) -> str | None:
    """Encode an error with its fingerprint, made of what those may see who are not shown the secrets of the run."""
    if error is None:
        return None
    ((payload,),) = await tx.fetch("payload_of_run", id=run_id)
    return stored_error(error, telling=without_secrets(error.message, str(payload)))


async def _end(tx: Tx, held: HeldRun, ending: ExternalReport) -> tuple[Report, Reported]:
    """End it as any lease ends; of a step that was waited for, its end, and the run is queued again."""
    lease = held.lease
    # One path for all ends. It begins at a lease, so that one is put back for the rest of this transaction.
    if held.waits:
        await handover.lease_again(tx, held)
    error = await _stored(tx, lease.run_id, ending.error)
    report = Report(lease.run_id, lease.fence, ending.outcome, held.busy, ending.result, error, limited=True)
    report = msgspec.structs.replace(report, part=held.part, job=lease.job, queue=lease.queue)
    if ending.outcome is Outcome.FAILED and ending.retry:
        adapts = ending.after is None and held.retry_policy.has_default_backoff
        report = msgspec.structs.replace(report, retry_in=held.rest_before_retry(ending.after), adapts=adapts)
    if held.step is not None and ending.outcome is Outcome.SUCCEEDED:
        opened = {id: facts for id, *facts in await tx.fetch("opened_steps", id=lease.run_id)}
        step_report = StepReport(held.step, StepState.SUCCEEDED, ending.result or "null")
        await notes.write(tx, Notes(steps=(_step_note(held, step_report, opened),)))
        report = Report(lease.run_id, lease.fence, Outcome.SNOOZED, held.busy, retry_in=0)
    return report, await reports.report(tx, [report])


def _state_after(report: Report, reported: Reported) -> RunState:
    for attempt in reported.settled:
        if attempt.state is not None:
            return attempt.state
        return RunState.SCHEDULED if report.retry_in else RunState.QUEUED
    return RunState.SUCCEEDED


async def _first_answer(tx: Tx, run_id: str, fence: int, reported: Outcome) -> RunState:
    """Return what was recorded under this fence. A step's end is a success that put its run off."""
    rows = await tx.fetch("recorded_end", id=run_id, fence=fence)
    if not rows:
        raise UnknownRun(run_id)
    ((outcome, left_as, state, last_fence, went_on),) = rows
    # A success leaves no row of its attempt: the fence of the run tells whose it was.
    if outcome is None and state == RunState.SUCCEEDED and last_fence == fence:
        outcome, left_as = Outcome.SUCCEEDED, RunState.SUCCEEDED
    if went_on and outcome == Outcome.SNOOZED:
        outcome = Outcome.SUCCEEDED
    if outcome == reported and left_as is not None:
        return RunState(left_as)
    if outcome in _REPORTABLE:
        raise AlreadyReported(run_id, fence, outcome)
    raise LeaseLost(run_id, fence, state)
