"""`client.external`: claim, report on and finish runs of external jobs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Unpack

import msgspec
from msgspec import Meta

from rota.config import Config
from rota.core.access.roles import Role
from rota.core.external.external import (
    MOST_CLAIMED,
    MOST_LINES_AT_ONCE,
    Assignment,
    ErrorReport,
    ExternalReport,
    Heartbeat,
    HeldRun,
    LineReport,
    StepReport,
    WorkerDescription,
    checked_error,
    checked_lease,
    checked_most,
    checked_run,
    checked_wait,
    identity_of,
    lines_told,
    listed,
    names_told,
    read_held,
    result_text,
    said_summary,
    stored_result,
    written_error,
    written_held,
    written_lines,
)
from rota.core.jobs.pipelines import steps_within
from rota.core.progress.notes import hundredths
from rota.core.progress.steps import RECORDED, StepState
from rota.core.runs.claim import SUSPECTS, Claim, OrderedRequest, QueueRequest
from rota.core.runs.outcome import Report
from rota.core.runs.run import RunError
from rota.core.states import Outcome, RunState
from rota.core.workers.requirements import labels_of, met_by
from rota.core.workers.worker import Pace, WorkerInfo
from rota.errors import BadDuration, Invalid, LeaseLost, UnknownOption
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.instants import instant, maybe_instant
from rota.values.json import Limits
from rota.values.scope import Scope
from rota.verbs.examples import ASSIGNMENT, RUN
from rota.verbs.verb import verb
from rota.verbs.wire import Wired, answer_field
from rota.version import __version__

if TYPE_CHECKING:
    from rota.engine.observability.meters import Meters
    from rota.store import Store
    from rota.store.external.external import Arrival, Assigned, HeartbeatAnswer

T = TypeVar("T")

Held = Iterable[tuple[str, int]]
ErrorOption = str | RunError | Mapping[str, Any]
Names = Annotated[list[str], Meta(min_length=1, max_length=500)]
HeldRuns = Annotated[list[HeldRun], Meta(max_length=500)]
Lines = Annotated[list[str | LineReport], Meta(min_length=1, max_length=MOST_LINES_AT_ONCE)]
Fence = Annotated[int, Meta(description="The number that came with the run")]
Result = Annotated[Any, Wired(Any, stored_result), Meta(description="Any JSON")]

_RUN = "/worker/runs/{id}"
_FENCE = {"fence": 1}
_HEARTBEAT = {"cancelling": False, "lease_until": "2026-01-31T08:00:30Z"}
_CLAIM = {"worker": "scanner@7f3a", "jobs": ["label-images"], "max": 1, "wait": "20s",
          "held": [{"id": RUN["id"], "fence": 1}]}  # fmt: skip
_RUN_STATE = answer_field("state", RunState, "RunStateAnswer", "The run's new state")
_STEP_STATE = answer_field("state", StepState, "StepStateAnswer", "The state that the step is in")
_RUNS = answer_field("runs", list[Assignment], "ClaimedRuns", "The claimed runs")


class ExternalWorker(msgspec.Struct, frozen=True):
    """An external worker and what it asks for. `jobs` None means every external job."""

    info: WorkerInfo
    jobs: tuple[str, ...] | None
    most: int
    lease: timedelta


class ExternalClient:
    """Worker protocol for external jobs. Every verb but `claim` acts on one run under its fence. A stale fence raises
    `LeaseLost` and changes nothing."""

    def __init__(self, store: Store, config: Config, meters: Meters) -> None:
        self._store = store
        self._config = config
        self._meters = meters
        self._limits = Limits(config.max_payload)
        self._boot = secrets.token_hex(6)

    @verb(
        "POST",
        "/worker/claim",
        Role.WORKER,
        operation="claim_runs",
        waits="wait",
        answer=_RUNS,
        takes=_CLAIM,
        gives={"runs": [ASSIGNMENT]},
    )
    async def claim(
        self,
        worker: Annotated[str, Meta(description="A name, or `name@boot` for a program that tells its starts apart")],
        *,
        queues: Annotated[Sequence[str], Wired(Names, listed), Meta(description="Queues, the first ones first")] = (
            "default",
        ),
        jobs: Annotated[
            Sequence[str] | None,
            Wired(Names | None, listed),
            Meta(description="Jobs to claim runs of, by default every external one"),
        ] = None,
        max: Annotated[int, Meta(ge=1, le=MOST_CLAIMED, description="Most runs to claim")] = 1,  # noqa: A002
        wait: Annotated[Duration | None, Meta(description="How long to wait for a run, up to 30s")] = None,
        lease: Annotated[Duration | None, Meta(description="How long a run is theirs without a heartbeat")] = None,
        held: Annotated[
            Held | None,
            Wired(HeldRuns | None, written_held, read_held),
            Meta(description="All runs that the worker knows of; other leases of it are handed back"),
        ] = None,
        **description: Unpack[WorkerDescription],
    ) -> list[Assignment]:
        """Claim up to `max` runs of external jobs from `queues`, in that order; return none if there are none within
        `wait`.

        `worker` is a name, or `name@boot` for a program that tells its starts apart; this client adds its own boot to a
        bare name. `held` lists all runs and fences that the worker knows of. Other leases under the same id are handed
        back first: their claim's response was lost. `labels` (`["gpu", "zone=eu"]`) and `version` describe the worker.
        A run with requirements goes to a worker that meets them, as with Python workers.
        """
        claimer = self._claimer(
            worker, names_told(queues, "queue"), jobs, max, checked_lease(lease, self._config.lease)
        )
        claimer = msgspec.structs.replace(claimer, info=_with_description(claimer.info, description))
        patience = checked_wait(wait)
        until = asyncio.get_running_loop().time() + patience.total_seconds()
        known = None if held is None else {checked_run(run_id, fence) for run_id, fence in held}
        hinted = asyncio.Event()
        queue_set = {*claimer.info.queues}
        unlisten = self._store.listen(lambda queue: hinted.set() if queue is None or queue in queue_set else None)
        try:
            while True:
                hinted.clear()  # before the claim, so that a hint during it is not lost
                arrival = await self._arrive(claimer, known)
                if not arrival.may_claim:
                    return []
                assignments = await self._claim(claimer, arrival) if arrival.versions else []
                remaining = until - asyncio.get_running_loop().time()
                if assignments or remaining <= 0:
                    return assignments
                # The timeout covers the wait only. A claim cancelled half-way could commit leases that nobody holds.
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(remaining, self._config.poll.total_seconds())):
                        await hinted.wait()
                known = None
        finally:
            unlisten()

    def _claimer(
        self, worker: str, queues: tuple[str, ...], jobs: Sequence[str] | None, most: int, lease: timedelta
    ) -> ExternalWorker:
        identity = identity_of(worker, self._boot)
        info = WorkerInfo(
            id=identity.id,
            name=identity.name,
            host="external",
            pid=0,
            version=__version__,
            queues=queues,
            jobs=(),
            slots=checked_most(most),
            pace=Pace(heartbeat=lease / 3, poll=self._config.poll, lease=lease),
        )
        return ExternalWorker(info, None if jobs is None else names_told(jobs, "job"), most, lease)

    async def _arrive(self, claimer: ExternalWorker, known: Collection[tuple[str, int]] | None) -> Arrival:
        arrival = await self._store.external.arrive(claimer.info, claimer.jobs, known)
        if arrival.reported is not None:
            self._meters.reported(arrival.lost, arrival.reported)
        return arrival

    async def _claim(self, claimer: ExternalWorker, arrival: Arrival) -> list[Assignment]:
        """Claim the first runs of each queue, in the order of queues."""
        who = OrderedRequest(
            worker_id=claimer.info.id,
            name=claimer.info.name,
            asks=(),
            known=arrival.versions,
            lease=in_micros(claimer.lease),
            slots=0,
            solo=SUSPECTS,
            met=met_by(claimer.info, arrival.requirements),
            needs=frozenset(arrival.requirements),
            partial=True,
        )
        assignments: list[Assignment] = []
        for queue in claimer.info.queues:
            await self._claim_from(queue, who, claimer.most, assignments)
        return assignments

    async def _claim_from(self, queue: str, who: OrderedRequest, most: int, assignments: list[Assignment]) -> None:
        """Add what is claimed, up to `most`, until the queue has nothing more for this worker."""
        while (room := most - len(assignments)) > 0:
            request = msgspec.structs.replace(who, asks=(QueueRequest(queue, room),), slots=room)
            answer, known = await self._store.claim_assigned(request)
            claims = [*answer.others, *answer.plain]
            self._meters.claimed(claims, self._store.clock.monotonic())
            assignments += [_assignment(claim, known) for claim in claims]
            if queue not in answer.left:  # what needs something that was unknown so far is for the next call
                break

    async def hand_back(self, claimed: Iterable[Assignment]) -> None:
        """Hand back claimed runs whose response reached nobody. They are queued again at their old place, and the
        attempt does not count."""
        await self._hand_back([(run.run_id, run.fence) for run in claimed])

    async def _hand_back(self, leases: Sequence[tuple[str, int]]) -> None:
        if leases:
            reports = [Report(id, fence, Outcome.HANDED_BACK, began=False) for id, fence in leases]
            self._meters.reported(reports, await self._store.report(reports))

    @verb(
        "POST", f"{_RUN}/heartbeat", Role.WORKER, operation="heartbeat", repeatable=True, takes=_FENCE, gives=_HEARTBEAT
    )
    async def heartbeat(self, run_id: str, fence: Fence) -> Heartbeat:
        """Renew the lease for as long as the claim asked for. A run that waits keeps its own deadline."""
        lease = in_micros(self._config.lease)
        return _heartbeat(await self._fenced(self._store.external.beat(*checked_run(run_id, fence), lease)))

    @verb(
        "POST",
        f"{_RUN}/progress",
        Role.WORKER,
        operation="report_progress",
        repeatable=True,
        names={"percent": "percentage"},
        gives=_HEARTBEAT,
        takes={**_FENCE, "percentage": 40, "summary": "page 4 of 10"},
    )
    async def progress(
        self,
        run_id: str,
        fence: Fence,
        percent: Annotated[
            Annotated[float, Meta(ge=0, le=100)] | None, Meta(description="How much is done, from 0 to 100")
        ] = None,
        summary: Annotated[str | None, Meta(description="What is being done")] = None,
    ) -> Heartbeat:
        """Report progress (`percent` from 0 to 100, and a `summary`); this is also a heartbeat. An omitted value keeps
        its last report."""
        run = checked_run(run_id, fence)
        done = None if percent is None else hundredths(percent)
        lease = in_micros(self._config.lease)
        return _heartbeat(await self._fenced(self._store.external.progress(*run, lease, done, said_summary(summary))))

    @verb(
        "POST",
        f"{_RUN}/step",
        Role.WORKER,
        operation="record_step",
        repeatable=True,
        answer=_STEP_STATE,
        gives={"state": "succeeded"},
        takes={**_FENCE, "id": "fetch", "state": "succeeded", "result": {"items": 25}},
    )
    async def step(
        self,
        run_id: str,
        fence: Fence,
        id: Annotated[str, Meta(description="Id of the step within the run")],
        state: Annotated[str, Meta(description="running, succeeded, failed or skipped")],
        *,
        result: Result = None,
        error: Annotated[
            ErrorOption | None, Wired(str | ErrorReport | None, written_error), Meta(description="Why it failed")
        ] = None,
    ) -> StepState:
        """Record the state of a step and return the state stored. A step recorded as done stays done.

        While a step is `running`, its declared timeout is kept: the lease ends with it, whatever heartbeats come. While
        one that is not `cancelable` is, heartbeats do not mention a cancel.
        """
        if state not in RECORDED:
            raise Invalid(f"the state of a step must be {', '.join(sorted(RECORDED))}, not {state!r:.40}")
        run, step_state = checked_run(run_id, fence), StepState(state)
        text = result_text(result, self._limits) if step_state is StepState.SUCCEEDED else None
        report = StepReport(id, step_state, text, None if error is None else checked_error(error))
        return await self._fenced(self._store.external.step(*run, in_micros(self._config.lease), report))

    @verb(
        "POST",
        f"{_RUN}/logs",
        Role.WORKER,
        operation="append_logs",
        repeatable="no",
        takes={**_FENCE, "lines": ["page 4 of 10"], "no": 1},
    )
    async def logs(
        self,
        run_id: str,
        fence: Fence,
        lines: Annotated[
            Iterable[str | Mapping[str, Any]], Wired(Lines, written_lines), Meta(description="Lines to append")
        ],
        *,
        no: Annotated[int | None, Meta(description="Number that grows from 1: the same is stored once")] = None,
    ) -> None:
        """Append lines to the run's log: text, or `{"text", "level", "logger"}`. With `no`, a sequence number that
        grows from 1, repeated calls are idempotent."""
        if no is not None and (type(no) is not int or not 1 <= no < 2**31):
            raise Invalid(f"no must be a whole number from 1 up, not {no!r:.40}")
        run, text = checked_run(run_id, fence), lines_told(lines)
        await self._fenced(self._store.external.say(*run, text, no, self._config.log_limit))

    @verb(
        "POST",
        f"{_RUN}/complete",
        Role.WORKER,
        operation="complete_run",
        repeatable=True,
        answer=_RUN_STATE,
        gives={"state": "succeeded"},
        takes={**_FENCE, "result": {"label": "cat"}},
    )
    async def complete(self, run_id: str, fence: Fence, result: Result = None) -> RunState:
        """Complete the run with a result. If the run waits for a step, complete that step; the run is queued again and
        continues with its result.

        Return the run's new state. A repeated call returns the first answer.
        """
        text = None if result is None else result_text(result, self._limits)
        return await self._finish(run_id, fence, ExternalReport(Outcome.SUCCEEDED, result=text))

    @verb(
        "POST",
        f"{_RUN}/fail",
        Role.WORKER,
        operation="fail_run",
        repeatable=True,
        answer=_RUN_STATE,
        gives={"state": "scheduled"},
        takes={**_FENCE, "error": {"message": "no paper", "code": "printer"}, "after": "5m"},
    )
    async def fail(
        self,
        run_id: str,
        fence: Fence,
        error: Annotated[
            ErrorOption, Wired(str | ErrorReport, written_error), Meta(description="A message, or an error with one")
        ],
        *,
        retry: Annotated[bool, Meta(description="Whether to retry it")] = True,
        after: Annotated[Duration | None, Meta(description="When to retry it, instead of as its policy says")] = None,
    ) -> RunState:
        """Report a failure. The run is retried by its policy, or `after` that long; with `retry=False` it is not
        retried."""
        try:
            delay = None if after is None else parse_duration(after)
        except BadDuration as refused:
            raise refused.within("after") from None
        return await self._finish(
            run_id, fence, ExternalReport(Outcome.FAILED, error=checked_error(error), retry=retry, after=delay)
        )

    @verb(
        "POST",
        f"{_RUN}/cancelled",
        Role.WORKER,
        operation="report_cancelled",
        repeatable=True,
        answer=_RUN_STATE,
        takes=_FENCE,
        gives={"state": "cancelled"},
    )
    async def cancelled(self, run_id: str, fence: Fence) -> RunState:
        """Confirm that the run has stopped because its cancellation was requested."""
        return await self._finish(run_id, fence, ExternalReport(Outcome.CANCELLED))

    async def _finish(self, run_id: str, fence: int, ending: ExternalReport) -> RunState:
        ended = await self._fenced(self._store.external.finish(*checked_run(run_id, fence), ending))
        if ended.report is not None and ended.reported is not None:
            self._meters.reported([ended.report], ended.reported)
        return ended.state

    async def _fenced(self, act: Coroutine[Any, Any, T]) -> T:
        """Await an act under a fence, and count refusals of stale fences."""
        try:
            return await act
        except LeaseLost:
            self._meters.refused.add()
            raise


def _with_description(info: WorkerInfo, description: Mapping[str, Any]) -> WorkerInfo:
    """Return the worker's info with its labels and version. Without a version it has none: the application's own does
    not apply."""
    for option in description:
        if option not in WorkerDescription.__optional_keys__:
            raise UnknownOption(option, WorkerDescription.__optional_keys__, where="a claim")
    version = description.get("version")
    if version is not None and not isinstance(version, str):
        raise Invalid(f"version must be a text, not {version!r:.80}")
    return msgspec.structs.replace(info, labels=labels_of(description.get("labels")), app_version=version or "")


def _heartbeat(answer: HeartbeatAnswer) -> Heartbeat:
    return Heartbeat(answer.cancelling, instant(answer.until))


def _assignment(claim: Claim, known: Assigned) -> Assignment:
    steps = steps_within(claim.part, known.steps.get(claim.run_id, {}))
    return Assignment(
        run_id=claim.run_id,
        fence=claim.fence,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts,
        job=claim.job,
        job_version=claim.job_version,
        payload=msgspec.json.decode(claim.payload),
        scope=Scope(claim.scope_kind, claim.scope_id),
        key=claim.key,
        plan_time=maybe_instant(claim.plan_time),
        idempotency_key=claim.idempotency_key,
        lease_until=instant(known.until[claim.run_id]),
        steps={id: None if text is None else msgspec.json.decode(text) for id, text in steps.items()},
    )
