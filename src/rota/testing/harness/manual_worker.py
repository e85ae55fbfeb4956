"""Worker driven by hand: each message of a worker to the database is a method, under the fence of its claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rota.client.client import Client
from rota.core.jobs.pipelines import within
from rota.core.progress.control_flow import HandedOver
from rota.core.progress.notes import LogNote, Notes, ProgressNote, StepNote, encoded, hundredths
from rota.core.progress.steps import StepState
from rota.core.runs.claim import PLAIN, SUSPECTS, Claim, ClaimRequest, OrderedRequest, QueueRequest
from rota.core.runs.outcome import Report
from rota.core.runs.run import Enqueued, Run
from rota.core.states import Outcome
from rota.core.workers.requirements import met_by
from rota.core.workers.worker import WorkerInfo
from rota.engine.handlers.attempt import Attempt, Reports
from rota.errors import Invalid, LeaseLost
from rota.store import Extended
from rota.values.durations import Duration, in_micros
from rota.values.json import Limits

RunReference = str | Enqueued | Run


def id_of(run: RunReference) -> str:
    return run if isinstance(run, str) else run.id


class HandWorker:
    """Worker that runs no handlers and renews nothing by itself: like a dead worker, it does only what the test does.

    Every method takes a run, or is about the only one held. A refused write raises `LeaseLost`. `claims` keeps every
    claim, like a worker that does not know yet that it lost a lease: so a test can let a zombie write.
    """

    def __init__(self, client: Client, info: WorkerInfo) -> None:
        self.info = info
        self.claims: dict[str, Claim] = {}
        self._attempts: dict[str, Attempt] = {}
        self._said = 0
        self._store = client.store
        self._registry = client.registry
        self._lease = in_micros(client.config.lease)
        self._reports = Reports(client.store.clock, Limits(client.config.max_payload), jitter=lambda: 0.0)

    @property
    def id(self) -> str:
        return self.info.id

    async def claim(self, wanted: int = 1, *, queues: Iterable[str] | None = None, solo: bool = True) -> HandWorker:
        """Claim up to `wanted` runs from each queue, in the order in which every worker does; return itself.

        Without `solo`, only those that a worker may keep for later: no limited, restricted or at-most-once runs.
        """
        asks = tuple(QueueRequest(queue, wanted) for queue in (self.info.queues if queues is None else queues))
        jobs = self._registry.known()
        if solo:
            claims = await self._claim_in_order(asks, jobs)
        else:
            claims = await self._store.claim(ClaimRequest(self.id, asks, jobs, self._lease, PLAIN))
        for claim in claims:
            handler = self._registry.for_run(claim.job, claim.job_version)
            assert handler is not None
            self.claims[claim.run_id] = claim
            self._attempts[claim.run_id] = attempt = Attempt(claim, handler)
            attempt.began_at = self._store.clock.monotonic()
        return self

    async def _claim_in_order(self, asks: tuple[QueueRequest, ...], jobs: Mapping[str, int]) -> list[Claim]:
        """Claim until there is no more: one claim takes runs of one kind, up to the first of another."""
        requirements = await self._store.known_requirements()
        met, needs = met_by(self.info, requirements), frozenset(requirements)
        claims: list[Claim] = []
        while True:
            got = Counter(claim.queue for claim in claims)
            left = tuple(QueueRequest(ask.queue, more) for ask in asks if (more := ask.wanted - got[ask.queue]) > 0)
            slots = sum(ask.wanted for ask in left)
            answer = await self._store.claim_in_order(
                OrderedRequest(
                    self.id, self.info.name, left, jobs, self._lease, slots, SUSPECTS, met, needs, partial=True
                )
            )
            claims += (taken := [*answer.plain, *answer.others])
            if not taken or len(taken) >= slots:
                return claims

    def fence(self, run: RunReference | None = None) -> int:
        return self._attempt(run).claim.fence

    async def heartbeat(self) -> Extended:
        """Renew all leases in `claims`; the answer names lost runs and those to cancel."""
        held = [(claim.run_id, claim.fence) for claim in self.claims.values()]
        return await self._store.extend(self.info, held, self._lease)

    async def finish(self, run: RunReference | None = None, result: Any = None) -> None:
        await self._tell(self._reports.success(self._attempt(run), result))

    async def fail(self, run: RunReference | None = None, error: BaseException | None = None) -> None:
        """Report a failure by the job's retry policy, without jitter.

        `Retry`, `Fail` and `Snooze` work as in a handler.
        """
        report = self._reports.failure(self._attempt(run), error or RuntimeError("failed by hand"))
        assert report is not None
        await self._tell(report)

    async def wait_for_external(
        self, timeout: Duration = "1h", *, step: str | None = None, run: RunReference | None = None
    ) -> None:
        """Hand the run over, as `ctx.wait_for_external()` does; `client.external` ends it under `fence(run)`."""
        await self.fail(run, HandedOver(timeout, step))

    async def time_out(self, run: RunReference | None = None) -> None:
        await self._tell(self._reports.stopped(self._attempt(run), Outcome.TIMED_OUT))

    async def cancelled(self, run: RunReference | None = None) -> None:
        """Report that the run has stopped because it was cancelled."""
        await self._tell(self._reports.stopped(self._attempt(run), Outcome.CANCELLED))

    async def progress(self, run: RunReference | None = None, *, percentage: float, summary: str | None = None) -> None:
        claim = self._attempt(run).claim
        note = ProgressNote(claim.run_id, claim.fence, hundredths(percentage), summary)
        await self._note(claim, Notes(progress=(note,)))

    async def step(self, id: str, result: Any = None, run: RunReference | None = None) -> None:
        """Record a step as done."""
        claim = self._attempt(run).claim
        id = within(claim.part, id)
        recorded = await self._store.notes.recorded_steps(claim.run_id)
        no = next((step.no for step in recorded if step.id == id), len(recorded) + 1)
        text = msgspec.json.encode(result).decode()
        note = StepNote(claim.run_id, claim.fence, claim.attempt, id, no, StepState.SUCCEEDED, 0, result=text)
        await self._note(claim, Notes(steps=(note,)))

    async def say(self, text: str, run: RunReference | None = None) -> None:
        """Log a line."""
        claim = self._attempt(run).claim
        self._said += 1
        lines = encoded([(0, 20, "hand", text)])
        await self._note(claim, Notes(logs=(LogNote(claim.run_id, claim.fence, claim.attempt, self._said, lines),)))

    async def _note(self, claim: Claim, notes: Notes) -> None:
        if await self._store.notes.write(notes):
            raise LeaseLost(claim.run_id, claim.fence)

    async def hand_back(self, run: RunReference | None = None, *, began: bool = False) -> None:
        report = self._reports.hand_back(self._attempt(run).claim)
        await self._tell(msgspec.structs.replace(report, began=began))

    async def leave(self) -> None:
        """Hand back every lease that the database has of this worker."""
        leases = await self._store.leases_of(self.id)
        if leases:
            await self._store.report([Report(id, fence, Outcome.HANDED_BACK, began=False) for id, fence in leases])

    def _attempt(self, run: RunReference | None) -> Attempt:
        if run is not None:
            if id_of(run) not in self._attempts:
                raise Invalid(f"worker {self.info.name!r} has never claimed run {id_of(run)}")
            return self._attempts[id_of(run)]
        if len(self._attempts) != 1:
            raise Invalid(f"worker {self.info.name!r} has claimed {len(self._attempts)} runs", hint="say which one")
        return next(iter(self._attempts.values()))

    async def _tell(self, report: Report) -> None:
        if (await self._store.report([report])).refused:
            raise LeaseLost(report.run_id, report.fence)
