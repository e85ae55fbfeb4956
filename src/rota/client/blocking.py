"""Synchronous client: one line per verb, run on an event loop in a background thread."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from rota.client.blocking_parts import (
    BlockingDataJobs,
    BlockingErrorGroups,
    BlockingExpectations,
    BlockingExternal,
    BlockingMonitoring,
    BlockingNotifications,
    BlockingQuotas,
    BlockingSchedules,
    BlockingTokens,
    BlockingWorkers,
)
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.queues import Pause
from rota.core.jobs.status import JobStatus
from rota.core.ledger.audit import Event
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.monitoring.statistics import JobStats
from rota.core.progress.notes import LogLine, Progress
from rota.core.progress.steps import Step
from rota.core.runs.bulk import BulkResult, Counted
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.options import Order
from rota.core.runs.run import Attempt, Enqueued, Run, RunFilter
from rota.core.runs.search import RunPage
from rota.core.states import RunState
from rota.core.workers.replicas import Replica
from rota.values.durations import Duration

if TYPE_CHECKING:  # clients of a server must not import the store
    from rota.client.client import Client

T = TypeVar("T")


class LoopThread:
    """Event loop in a background thread, to which synchronous code submits coroutines."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rota-blocking", daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def see_through(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Like `call`, but defer SIGINT until the coroutine is done, so that it is not abandoned half-way."""
        handler = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or not callable(handler):
            return self.call(coroutine)
        interrupts: list[tuple[int, FrameType | None]] = []
        signal.signal(signal.SIGINT, lambda *arguments: interrupts.append(arguments))
        try:
            result = self.call(coroutine)
        finally:
            signal.signal(signal.SIGINT, handler)
        if interrupts:
            handler(*interrupts[0])
        return result

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingClient:
    """Synchronous `Client`. It connects on the first call."""

    def __init__(self, connect: Callable[[], Awaitable[Client]]) -> None:
        self._thread = LoopThread()
        self._connect = connect
        self._client: Client | None = None
        # Calls from several threads share one connection: the first connects, the others wait.
        self._connecting = asyncio.Lock()
        self.schedules = BlockingSchedules(self._call)
        self.workers = BlockingWorkers(self._call)
        self.tokens = BlockingTokens(self._call)
        self.quotas = BlockingQuotas(self._call)
        self.external = BlockingExternal(self._call)
        self.expectations = BlockingExpectations(self._call)
        self.error_groups = BlockingErrorGroups(self._call)
        self.notifications = BlockingNotifications(self._call)
        self.data_jobs = BlockingDataJobs(self._call)
        self.monitoring = BlockingMonitoring(self._call)

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

    def list(self, run_filter: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> Sequence[Run]:
        return self._call(lambda client: client.list(run_filter, limit=limit, before=before))

    def page(self, run_filter: RunFilter | None = None, *, limit: int = 50, before: str | None = None) -> RunPage:
        return self._call(lambda client: client.page(run_filter, limit=limit, before=before))

    def attempts(self, run_id: str) -> Sequence[Attempt]:
        return self._call(lambda client: client.attempts(run_id))

    def parents(self, run_id: str) -> Sequence[RelatedRun]:
        return self._call(lambda client: client.parents(run_id))

    def children(self, run_id: str) -> Sequence[RelatedRun]:
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

    def retry(self, run_id: str, **options: Any) -> Enqueued:
        return self._call(lambda client: client.retry(run_id, **options))

    def steps(self, run_id: str) -> Sequence[Step]:
        return self._call(lambda client: client.steps(run_id))

    def progress(self, run_id: str) -> Progress:
        return self._call(lambda client: client.progress(run_id))

    def logs(self, run_id: str, *, after: str | None = None, last: int | None = None) -> Sequence[LogLine]:
        return self._call(lambda client: client.logs(run_id, after=after, last=last))

    def count(
        self, run_filter: RunFilter | None = None, *, most: int = 10_000, within: Duration | None = None
    ) -> Counted:
        return self._call(lambda client: client.count(run_filter, most=most, within=within))

    def cancel_many(self, run_filter: RunFilter, **options: Any) -> BulkResult:
        return self._call(lambda client: client.cancel_many(run_filter, **options))

    def retry_many(self, run_filter: RunFilter, **options: Any) -> BulkResult:
        return self._call(lambda client: client.retry_many(run_filter, **options))

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

    def retry_job(self, name: str, **options: Any) -> Enqueued:
        return self._call(lambda client: client.retry_job(name, **options))

    def events(self, run_id: str) -> Sequence[Event]:
        return self._call(lambda client: client.events(run_id))

    def audit(self, **filters: Any) -> Sequence[Event]:
        return self._call(lambda client: client.audit(**filters))

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
