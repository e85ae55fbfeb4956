"""The client for code without an event loop: one line per verb, run on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from rota.client import Client, Order
from rota.core.access import Token
from rota.core.applying import Difference
from rota.core.backfilling import Backfill
from rota.core.bulking import BulkResult, Counted
from rota.core.dependencies import Related
from rota.core.events import Event
from rota.core.expectations import Expected
from rota.core.explaining import Explanation
from rota.core.jobstatus import JobStatus
from rota.core.ledger import Verification
from rota.core.model import Attempt, Enqueued, JobDefinition, Pause, Run, RunError, RunFilter
from rota.core.notes import LogLine, Progress
from rota.core.notifications import NotificationView
from rota.core.occurrences import Occurrence
from rota.core.outside import Assignment, Heartbeat
from rota.core.preview import Fire
from rota.core.quotas import QuotaOf
from rota.core.replicas import Replica
from rota.core.schedules import Schedule
from rota.core.scope import Scope
from rota.core.states import RunState
from rota.core.statistics import JobStats
from rota.core.steps import Step, StepState
from rota.core.triggers import Trigger
from rota.core.workers import Worker
from rota.drafting import Simulated, WhatIf
from rota.durations import Duration
from rota.tokens import Issued

T = TypeVar("T")


class LoopThread:
    """An event loop that sync code can hand coroutines to."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rota-blocking", daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingClient:
    def __init__(self, connect: Callable[[], Awaitable[Client]]) -> None:
        self._thread = LoopThread()
        self._connect = connect
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self.schedules = BlockingSchedules(self._call)
        self.workers = BlockingWorkers(self._call)
        self.tokens = BlockingTokens(self._call)
        self.quotas = BlockingQuotas(self._call)
        self.outside = BlockingOutside(self._call)
        self.expectations = BlockingExpecting(self._call)
        self.notifications = BlockingNotifications(self._call)
        self.data_jobs = BlockingDataJobs(self._call)

    def _call(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        async def connected() -> T:
            async with self._connecting:
                if self._client is None:
                    self._client = await self._connect()
            return await verb(self._client)

        return self._thread.call(connected())

    def close(self) -> None:
        if self._client is not None:
            self._thread.call(self._client.close())
        self._thread.stop()

    def time(self) -> datetime:
        return self._call(lambda client: client.time())

    def metrics(self) -> str:
        return self._call(lambda client: client.metrics())

    def enqueue(self, order: Order) -> Enqueued:
        return self._call(lambda client: client.enqueue(order))

    def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Enqueued]:
        return self._call(lambda client: client.enqueue_many(orders))

    def jobs(self) -> Sequence[JobDefinition]:
        return self._call(lambda client: client.jobs())

    def get(self, run_id: str) -> Run:
        return self._call(lambda client: client.get(run_id))

    def list(self, wanted: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> Sequence[Run]:
        return self._call(lambda client: client.list(wanted, limit=limit, before=before))

    def attempts(self, run_id: str) -> Sequence[Attempt]:
        return self._call(lambda client: client.attempts(run_id))

    def parents(self, run_id: str) -> Sequence[Related]:
        return self._call(lambda client: client.parents(run_id))

    def children(self, run_id: str) -> Sequence[Related]:
        return self._call(lambda client: client.children(run_id))

    def wait(self, run_id: str, timeout: Duration | None = None) -> Run:
        return self._call(lambda client: client.wait(run_id, timeout))

    def explain(self, run_id: str) -> Explanation:
        return self._call(lambda client: client.explain(run_id))

    def cancel(self, run_id: str, *, reason: str | None = None, actor: str | None = None) -> RunState:
        return self._call(lambda client: client.cancel(run_id, reason=reason, actor=actor))

    def restrict(self, run_id: str, only_workers: Sequence[str] | None, *, actor: str | None = None) -> Run:
        return self._call(lambda client: client.restrict(run_id, only_workers, actor=actor))

    def replicas(self, run_id: str) -> Sequence[Replica]:
        return self._call(lambda client: client.replicas(run_id))

    def retry(
        self, run_id: str, *, keep_steps: bool = False, from_step: str | None = None, actor: str | None = None
    ) -> Enqueued:
        return self._call(lambda client: client.retry(run_id, keep_steps=keep_steps, from_step=from_step, actor=actor))

    def steps(self, run_id: str) -> Sequence[Step]:
        return self._call(lambda client: client.steps(run_id))

    def progress(self, run_id: str) -> Progress:
        return self._call(lambda client: client.progress(run_id))

    def logs(self, run_id: str, *, after: str | None = None, last: int | None = None) -> Sequence[LogLine]:
        return self._call(lambda client: client.logs(run_id, after=after, last=last))

    def count(self, wanted: RunFilter | None = None, *, most: int = 10_000) -> Counted:
        return self._call(lambda client: client.count(wanted, most=most))

    def cancel_many(self, wanted: RunFilter, **how: Any) -> BulkResult:
        return self._call(lambda client: client.cancel_many(wanted, **how))

    def retry_many(self, wanted: RunFilter, **how: Any) -> BulkResult:
        return self._call(lambda client: client.retry_many(wanted, **how))

    def job_status(self, name: str) -> JobStatus:
        return self._call(lambda client: client.job_status(name))

    def job_statuses(self) -> Sequence[JobStatus]:
        return self._call(lambda client: client.job_statuses())

    def job_stats(self, name: str) -> JobStats:
        return self._call(lambda client: client.job_stats(name))

    def pause_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> JobStatus:
        return self._call(lambda client: client.pause_job(name, reason=reason, actor=actor))

    def resume_job(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> JobStatus:
        return self._call(lambda client: client.resume_job(name, catch_up=catch_up, actor=actor))

    def cancel_job(self, name: str, *, reason: str | None = None, actor: str | None = None) -> int:
        return self._call(lambda client: client.cancel_job(name, reason=reason, actor=actor))

    def retry_job(self, name: str, *, actor: str | None = None) -> Enqueued:
        return self._call(lambda client: client.retry_job(name, actor=actor))

    def events(self, run_id: str) -> Sequence[Event]:
        return self._call(lambda client: client.events(run_id))

    def audit(self, **wanted: Any) -> Sequence[Event]:
        return self._call(lambda client: client.audit(**wanted))

    def prune(self) -> int:
        return self._call(lambda client: client.prune())

    def queues(self) -> Sequence[tuple[str, int, int, int]]:
        return self._call(lambda client: client.queues())

    def pause_queue(self, queue: str, *, reason: str | None = None, actor: str | None = None) -> None:
        return self._call(lambda client: client.pause_queue(queue, reason=reason, actor=actor))

    def resume_queue(self, queue: str, *, actor: str | None = None) -> bool:
        return self._call(lambda client: client.resume_queue(queue, actor=actor))

    def paused_queues(self) -> Sequence[Pause]:
        return self._call(lambda client: client.paused_queues())


class _Call(Protocol):
    def __call__(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T: ...


class BlockingSchedules:
    """`client.schedules`, likewise."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def create(self, name: str, job: str, trigger: Trigger, **options: Any) -> Schedule:
        return self._call(lambda client: client.schedules.create(name, job, trigger, **options))

    def update(self, name: str, **changes: Any) -> Schedule:
        return self._call(lambda client: client.schedules.update(name, **changes))

    def delete(self, name: str, *, actor: str | None = None) -> None:
        return self._call(lambda client: client.schedules.delete(name, actor=actor))

    def get(self, name: str) -> Schedule:
        return self._call(lambda client: client.schedules.get(name))

    def list(self, **wanted: Any) -> Sequence[Schedule]:
        return self._call(lambda client: client.schedules.list(**wanted))

    def pause(self, name: str, **facts: Any) -> Schedule:
        return self._call(lambda client: client.schedules.pause(name, **facts))

    def resume(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> Schedule:
        return self._call(lambda client: client.schedules.resume(name, catch_up=catch_up, actor=actor))

    def enable(self, name: str, *, actor: str | None = None) -> Schedule:
        return self._call(lambda client: client.schedules.enable(name, actor=actor))

    def disable(self, name: str, *, actor: str | None = None) -> Schedule:
        return self._call(lambda client: client.schedules.disable(name, actor=actor))

    def trigger(
        self, name: str, *, scope: Scope | tuple[str, str] | None = None, force: bool = False, actor: str | None = None
    ) -> Sequence[str]:
        return self._call(lambda client: client.schedules.trigger(name, scope=scope, force=force, actor=actor))

    def preview(self, name: str, count: int = 10, *, after: datetime | None = None) -> Sequence[Fire]:
        return self._call(lambda client: client.schedules.preview(name, count, after=after))

    def simulate(self, name: str, span: Duration = "1d", what_if: WhatIf | None = None, **changes: Any) -> Simulated:
        return self._call(lambda client: client.schedules.simulate(name, span, what_if, **changes))

    def explain(self, name: str, at: datetime) -> Explanation:
        return self._call(lambda client: client.schedules.explain(name, at))

    def occurrences(self, name: str, **wanted: Any) -> Sequence[Occurrence]:
        return self._call(lambda client: client.schedules.occurrences(name, **wanted))

    def events(self, name: str) -> Sequence[Event]:
        return self._call(lambda client: client.schedules.events(name))

    def verify(self, name: str, *, thorough: bool = True) -> Verification:
        return self._call(lambda client: client.schedules.verify(name, thorough=thorough))

    def backfill(self, name: str, from_at: datetime, to_at: datetime, **how: Any) -> Backfill:
        return self._call(lambda client: client.schedules.backfill(name, from_at, to_at, **how))

    def plan_documents(self, documents: Iterable[Mapping[str, Any]], owner: str) -> Sequence[Difference]:
        return self._call(lambda client: client.schedules.plan_documents(documents, owner))

    def apply_documents(
        self, documents: Iterable[Mapping[str, Any]], owner: str, *, actor: str | None = None
    ) -> Sequence[Difference]:
        return self._call(lambda client: client.schedules.apply_documents(documents, owner, actor=actor))


class BlockingOutside:
    """`client.outside`, likewise."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def claim(self, worker: str, **wanted: Any) -> list[Assignment]:
        return self._call(lambda client: client.outside.claim(worker, **wanted))

    def heartbeat(self, run_id: str, fence: int) -> Heartbeat:
        return self._call(lambda client: client.outside.heartbeat(run_id, fence))

    def progress(self, run_id: str, fence: int, percent: float | None = None, summary: str | None = None) -> Heartbeat:
        return self._call(lambda client: client.outside.progress(run_id, fence, percent, summary))

    def step(self, run_id: str, fence: int, id: str, state: str, **said: Any) -> StepState:
        return self._call(lambda client: client.outside.step(run_id, fence, id, state, **said))

    def logs(self, run_id: str, fence: int, lines: Iterable[str | Mapping[str, Any]], *, no: int | None = None) -> None:
        return self._call(lambda client: client.outside.logs(run_id, fence, lines, no=no))

    def complete(self, run_id: str, fence: int, result: Any = None) -> RunState:
        return self._call(lambda client: client.outside.complete(run_id, fence, result))

    def fail(self, run_id: str, fence: int, error: str | RunError | Mapping[str, Any], **how: Any) -> RunState:
        return self._call(lambda client: client.outside.fail(run_id, fence, error, **how))

    def cancelled(self, run_id: str, fence: int) -> RunState:
        return self._call(lambda client: client.outside.cancelled(run_id, fence))


class BlockingWorkers:
    """`client.workers`, likewise."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def get(self, who: str) -> Worker:
        return self._call(lambda client: client.workers.get(who))

    def find(self, who: str) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.find(who))

    def drain(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.drain(who, actor=actor))

    def resume(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.resume(who, actor=actor))

    def stop(self, who: str, *, actor: str | None = None) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.stop(who, actor=actor))

    def set(self, who: str, **settings: Any) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.set(who, **settings))

    def list(self) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.list())


class BlockingTokens:
    """`client.tokens`, likewise; checking them is the server's business."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def create(self, name: str, role: str, **options: Any) -> Issued:
        return self._call(lambda client: client.tokens.create(name, role, **options))

    def list(self) -> Sequence[Token]:
        return self._call(lambda client: client.tokens.list())

    def revoke(self, who: str, *, actor: str | None = None) -> Token:
        return self._call(lambda client: client.tokens.revoke(who, actor=actor))


class BlockingQuotas:
    """`client.quotas`, likewise."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def set(self, kind: str, id: str | None = None, **quota: Any) -> QuotaOf:
        return self._call(lambda client: client.quotas.set(kind, id, **quota))

    def get(self, kind: str, id: str | None = None) -> QuotaOf:
        return self._call(lambda client: client.quotas.get(kind, id))

    def drop(self, kind: str, id: str | None = None) -> None:
        return self._call(lambda client: client.quotas.drop(kind, id))

    def ls(self) -> Sequence[QuotaOf]:
        return self._call(lambda client: client.quotas.ls())


class BlockingExpecting:
    """`client.expectations`, likewise."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def set(self, kind: str, name: str, **expect: Any) -> Expected:
        return self._call(lambda client: client.expectations.set(kind, name, **expect))

    def get(self, kind: str, name: str) -> Expected:
        return self._call(lambda client: client.expectations.get(kind, name))

    def find(self, kind: str, name: str) -> Expected | None:
        return self._call(lambda client: client.expectations.find(kind, name))

    def drop(self, kind: str, name: str, *, actor: str | None = None) -> bool:
        return self._call(lambda client: client.expectations.drop(kind, name, actor=actor))

    def list(self, *, breached: bool = False) -> Sequence[Expected]:
        return self._call(lambda client: client.expectations.list(breached=breached))


class BlockingNotifications:
    """`client.notifications`, likewise."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def add(self, name: str, **options: Any) -> NotificationView:
        return self._call(lambda client: client.notifications.add(name, **options))

    def change(self, name: str, **options: Any) -> NotificationView:
        return self._call(lambda client: client.notifications.change(name, **options))

    def drop(self, name: str, *, actor: str | None = None) -> None:
        return self._call(lambda client: client.notifications.drop(name, actor=actor))

    def get(self, name: str) -> NotificationView:
        return self._call(lambda client: client.notifications.get(name))

    def list(self) -> Sequence[NotificationView]:
        return self._call(lambda client: client.notifications.list())

    def test(self, name: str) -> Any:
        return self._call(lambda client: client.notifications.test(name))


class BlockingDataJobs:
    """`client.data_jobs`, likewise."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def add(self, name: str, kind: str, **options: Any) -> JobDefinition:
        return self._call(lambda client: client.data_jobs.add(name, kind, **options))

    def change(self, name: str, **options: Any) -> JobDefinition:
        return self._call(lambda client: client.data_jobs.change(name, **options))

    def drop(self, name: str, *, force: bool = False, actor: str | None = None) -> None:
        return self._call(lambda client: client.data_jobs.drop(name, force=force, actor=actor))
