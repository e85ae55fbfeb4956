"""Signatures of the synchronous client's parts. Written by `python -m tools.stubs`; do not edit."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Unpack

from msgspec import Meta

from rota.client.access.tokens import _LIFE
from rota.client.external.external import ErrorOption, Fence, Held, Result
from rota.client.handle import Handle
from rota.client.jobs.executions import Offset
from rota.client.jobs.jobs import CatchUp, Count, Reason
from rota.client.limits.live import AtOnce, Lasts, Rate, Why
from rota.client.limits.quotas import Many, ResumedScope
from rota.client.monitoring.attention import Kind, Subject, Unsnoozed
from rota.client.monitoring.audit import Seq
from rota.client.monitoring.monitoring import From, To
from rota.client.runs.assignment import Names
from rota.client.runs.pages import Before, LineCursor, Lines
from rota.client.schedules import forms
from rota.client.schedules.control import PauseReason
from rota.client.schedules.history import Occurrences
from rota.client.schedules.schedules import RecentCount, SearchText
from rota.client.schedules.simulate import SimulationOptions
from rota.client.workers.workers import Slots
from rota.core.access.roles import Issued, Role, Token
from rota.core.alerts.expectations import ExpectationOptions, Expected
from rota.core.alerts.notifications import NewNotification, NotificationChanges, NotificationView
from rota.core.calendar.triggers import Trigger
from rota.core.external.external import Assignment, Heartbeat, WorkerDescription
from rota.core.jobs.queues import Queue, ResumedQueue
from rota.core.jobs.status import CancelledJob, JobFilter, JobStatus, JobView
from rota.core.ledger.audit import Event
from rota.core.ledger.backfill import Backfill
from rota.core.ledger.database_state import DatabaseStanding
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.ledger.family import Family
from rota.core.ledger.occurrences import Occurrence, OccurrencePage, PagePosition
from rota.core.ledger.verify import Verification
from rota.core.limits.quotas import QuotaOf, RateOption
from rota.core.monitoring.attention import Attention
from rota.core.monitoring.charts import Series
from rota.core.monitoring.doctor import Check
from rota.core.monitoring.error_groups import ErrorGroups
from rota.core.monitoring.executions import Execution, Executions, SchedulerMetrics
from rota.core.monitoring.overview import Overview, UpcomingRuns
from rota.core.monitoring.statistics import JobStats
from rota.core.monitoring.timeline import Timeline
from rota.core.planning.question import SimulationReport
from rota.core.progress.notes import LogLine, Progress
from rota.core.progress.steps import Step, StepState
from rota.core.runs.bulk import BulkResult, Counted, Purged, SoFar
from rota.core.runs.dependencies import RelatedRun
from rota.core.runs.options import Order
from rota.core.runs.run import Attempt, CreatedJob, EnqueuedRun, Run, RunFilter
from rota.core.runs.search import RunPage
from rota.core.schedules.diff import Difference
from rota.core.schedules.recent_runs import Recent
from rota.core.schedules.schedule import Schedule, ScheduleOptions
from rota.core.states import RunState
from rota.core.workers.replicas import Replica
from rota.core.workers.worker import Queues, Worker
from rota.registry.data_jobs import JobChanges
from rota.values.durations import Duration
from rota.values.json import Json
from rota.values.scope import Scope
from rota.verbs.pages import Cursor, Limit, LongLimit
from rota.verbs.revisions import Revisions

def class_name(part: str) -> str: ...
def verbs_in(kind: type) -> dict[str, Callable[..., Any]]: ...

class BlockingVerbs:
    def attempts(self, run_id: str) -> Sequence[Attempt]: ...
    def audit(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        actor: str | None = None,
        limit: Limit = 50,
        before: Seq | None = None,
    ) -> Sequence[Event]: ...
    def cancel(self, run_id: str, *, reason: Reason = None, actor: str | None = None) -> Run: ...
    def cancel_job(self, name: str, *, reason: Reason = None, actor: str | None = None) -> CancelledJob: ...
    def cancel_many(
        self,
        run_filter: RunFilter,
        *,
        reason: Reason = None,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult: ...
    def change_jobs(
        self,
        action: str,
        job_filter: JobFilter | None = None,
        *,
        expected: Count | None = None,
        everything: bool = False,
        reason: Reason = None,
        catch_up: CatchUp = "skip",
        dry_run: bool = False,
        actor: str | None = None,
    ) -> BulkResult: ...
    def check_ready(self) -> None: ...
    def children(self, run_id: str) -> Sequence[RelatedRun]: ...
    def clear_job_limit(self, name: str, *, actor: str | None = None) -> None: ...
    def clear_queue_limit(self, queue: str, *, actor: str | None = None) -> None: ...
    def count(
        self,
        run_filter: RunFilter | None = None,
        *,
        most: int = 10000,
        within: Duration | None = None,
        run_time: bool = False,
    ) -> Counted: ...
    def enqueue(self, order: Order) -> Handle[Any]: ...
    def enqueue_many(self, orders: Iterable[Order]) -> Sequence[Handle[Any]]: ...
    def events(self, run_id: str) -> Sequence[Event]: ...
    def execution(self, execution_id: str) -> Execution: ...
    def executions(self, name: str, *, limit: Limit = 50, offset: Offset = 0) -> Executions: ...
    def explain(self, run_id: str) -> Explanation: ...
    def family(self, run_id: str, *, limit: int = 200) -> Family: ...
    def get(self, run_id: str, *, steps: bool = True) -> Run: ...
    def get_many(self, run_ids: Iterable[str], *, gone_ok: bool = False) -> Sequence[Run]: ...
    def job(self, name: str) -> JobView: ...
    def job_runs(
        self, name: str, run_filter: RunFilter | None = None, *, limit: Limit = 50, before: Before = None
    ) -> RunPage: ...
    def job_stats(self, name: str) -> JobStats: ...
    def job_status(self, name: str) -> JobStatus: ...
    def jobs(
        self,
        *,
        name: Annotated[str, Meta(max_length=200, description="Name, or a pattern: `import-*`")] | None = None,
        text: Annotated[str, Meta(max_length=200, description="Part of the name, in any case")] | None = None,
        kind: Annotated[str, Meta(description="python, http, command, external or pipeline")] | None = None,
        queue: Annotated[str, Meta(description="Queue of its runs")] | None = None,
        tag: Annotated[str, Meta(description="One of its tags")] | None = None,
        state: Annotated[str, Meta(description="State of the job, such as paused or failed")] | None = None,
        limit: LongLimit = 100,
        after: str | None = None,
    ) -> Sequence[JobView]: ...
    def limit_job(
        self,
        name: str,
        *,
        max_concurrency: AtOnce | None = None,
        rate: Rate = None,
        lasts: Lasts = None,
        reason: Why = None,
        actor: str | None = None,
    ) -> JobStatus: ...
    def limit_queue(
        self,
        queue: str,
        *,
        max_concurrency: AtOnce | None = None,
        rate: Rate = None,
        lasts: Lasts = None,
        reason: Why = None,
        force: bool = False,
        actor: str | None = None,
    ) -> Queue: ...
    def list(
        self, run_filter: RunFilter | None = None, *, limit: Limit = 50, before: str | None = None
    ) -> list[Run]: ...
    def logs(
        self, run_id: str, *, limit: Lines = 1000, cursor: LineCursor = None, tail: Lines | None = None
    ) -> Sequence[LogLine]: ...
    def metrics(self) -> str: ...
    def page(self, run_filter: RunFilter | None = None, *, limit: Limit = 50, before: Before = None) -> RunPage: ...
    def parents(self, run_id: str) -> Sequence[RelatedRun]: ...
    def pause_job(self, name: str, *, reason: Reason = None, actor: str | None = None) -> JobStatus: ...
    def pause_queue(
        self, queue: str, *, reason: Reason = None, force: bool = False, actor: str | None = None
    ) -> Queue: ...
    def progress(self, run_id: str) -> Progress: ...
    def prune(self) -> int: ...
    def purge(
        self,
        run_filter: RunFilter,
        *,
        older_than: Duration | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> Purged: ...
    def queues(self, *, limit: LongLimit = 100, after: str | None = None) -> Sequence[Queue]: ...
    def replicas(self, run_id: str) -> Sequence[Replica]: ...
    def restrict(self, run_id: str, only_workers: Names | None, *, actor: str | None = None) -> Run: ...
    def result(self, run_id: str, timeout: Duration | None = None) -> Any: ...
    def resume_job(self, name: str, *, catch_up: CatchUp = "skip", actor: str | None = None) -> JobStatus: ...
    def resume_queue(self, queue: str, *, actor: str | None = None) -> ResumedQueue: ...
    def retry(
        self,
        run_id: str,
        *,
        keep_steps: bool = False,
        from_step: str | None = None,
        payload: dict[str, Any] | None = None,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> EnqueuedRun: ...
    def retry_job(self, name: str, *, actor: str | None = None, idempotency_key: str | None = None) -> EnqueuedRun: ...
    def retry_many(
        self,
        run_filter: RunFilter,
        *,
        actor: str | None = None,
        expected: int | None = None,
        everything: bool = False,
        progress: SoFar | None = None,
    ) -> BulkResult: ...
    def scheduler_metrics(self) -> SchedulerMetrics: ...
    def stats_of_jobs(
        self,
        *,
        name: Annotated[str, Meta(max_length=200, description="Name, or a pattern: `import-*`")] | None = None,
        text: Annotated[str, Meta(max_length=200, description="Part of the name, in any case")] | None = None,
        kind: Annotated[str, Meta(description="python, http, command, external or pipeline")] | None = None,
        queue: Annotated[str, Meta(description="Queue of its runs")] | None = None,
        tag: Annotated[str, Meta(description="One of its tags")] | None = None,
        state: Annotated[str, Meta(description="State of the job, such as paused or failed")] | None = None,
        limit: LongLimit = 100,
        after: str | None = None,
    ) -> Sequence[JobStats]: ...
    def steps(self, run_id: str) -> Sequence[Step]: ...
    def time(self) -> datetime: ...
    def wait(self, run_id: str, timeout: Duration | None = None) -> Run: ...

class BlockingSchedules:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def apply_documents(
        self, documents: Iterable[Mapping[str, Any]], owner: str, *, actor: str | None = None
    ) -> Sequence[Difference]: ...
    def backfill(
        self,
        name: str,
        from_at: datetime,
        to_at: datetime,
        *,
        ran: str = "none",
        concurrency: int = 1,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> Backfill: ...
    def create(
        self,
        name: str,
        job: str,
        trigger: Trigger,
        *,
        owner: str = "api",
        actor: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule: ...
    def delete(self, name: str, *, actor: str | None = None, expected_revision: Revisions | None = None) -> None: ...
    def disable(self, name: str, *, actor: str | None = None) -> Schedule: ...
    def enable(self, name: str, *, actor: str | None = None) -> Schedule: ...
    def events(self, name: str) -> Sequence[Event]: ...
    def explain(self, name: str, at: datetime | None = None) -> Explanation: ...
    def get(self, name: str, *, recent: RecentCount | None = None) -> Schedule: ...
    def list(
        self,
        *,
        job: str | None = None,
        owner: str | None = None,
        text: SearchText | None = None,
        state: str | None = None,
        limit: LongLimit = 100,
        after: str | None = None,
        recent: RecentCount | None = None,
    ) -> Sequence[Schedule]: ...
    def occurrence_page(
        self,
        name: str,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        *,
        limit: Occurrences = 100,
        after: forms.AfterPlace = None,
    ) -> OccurrencePage: ...
    def occurrences(
        self,
        name: str,
        from_at: datetime | None = None,
        to_at: datetime | None = None,
        *,
        limit: Occurrences = 100,
        after: PagePosition | None = None,
    ) -> Sequence[Occurrence]: ...
    def pause(
        self,
        name: str,
        *,
        reason: PauseReason | None = None,
        actor: str | None = None,
        until: datetime | Duration | None = None,
    ) -> Schedule: ...
    def recent(self, names: Sequence[str], limit: int = 30) -> Mapping[str, Recent]: ...
    def replace(
        self,
        name: str,
        job: str,
        trigger: Trigger,
        *,
        actor: str | None = None,
        expected_revision: Revisions | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule: ...
    def restore(self, name: str, *, actor: str | None = None) -> Schedule: ...
    def resume(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> Schedule: ...
    def simulate(
        self,
        name: str | None = None,
        span: Duration = "1d",
        *,
        changes: Mapping[str, Any] | None = None,
        documents: Iterable[Mapping[str, Any]] | None = None,
        owner: str | None = None,
        **options: Unpack[SimulationOptions],
    ) -> SimulationReport: ...
    def trigger(
        self,
        name: str,
        *,
        scope: Scope | tuple[str, str] | None = None,
        force: bool = False,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sequence[Run]: ...
    def update(
        self,
        name: str,
        *,
        job: str | None = None,
        trigger: Trigger | None = None,
        actor: str | None = None,
        expected_revision: Revisions | None = None,
        **changes: Any,
    ) -> Schedule: ...
    def verify(self, name: str, *, thorough: bool = True) -> Verification: ...

class BlockingWorkers:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def drain(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]: ...
    def find(self, id_or_name: str) -> Sequence[Worker]: ...
    def get(self, id_or_name: str) -> Worker: ...
    def list(self) -> Sequence[Worker]: ...
    def resume(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]: ...
    def stop(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]: ...
    def update(
        self,
        id_or_name: str,
        *,
        slots: Slots | None = None,
        queues: Queues | None = None,
        heartbeat: Duration | None = None,
        poll: Duration | None = None,
        actor: str | None = None,
    ) -> Sequence[Worker]: ...

class BlockingTokens:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def create(
        self,
        name: str,
        role: str | Role,
        *,
        expires: Duration | None = _LIFE,
        scope: Scope | tuple[str, str] | None = None,
        actor: str | None = None,
    ) -> Issued: ...
    def list(self) -> Sequence[Token]: ...
    def revoke(self, id_or_name: str, *, actor: str | None = None) -> Token: ...

class BlockingQuotas:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def delete(self, kind: str, id: str | None = None, *, actor: str | None = None) -> None: ...
    def get(self, kind: str, id: str | None = None) -> QuotaOf: ...
    def list(self) -> Sequence[QuotaOf]: ...
    def pause(
        self,
        kind: str,
        id: str,
        *,
        reason: Annotated[str, Meta(max_length=1000, description="Why, for the audit log")] | None = None,
        actor: str | None = None,
    ) -> QuotaOf: ...
    def resume(self, kind: str, id: str, *, actor: str | None = None) -> ResumedScope: ...
    def update(
        self,
        kind: str,
        id: str | None = None,
        *,
        max_concurrency: Many | None = None,
        max_queued: Many | None = None,
        rate: RateOption = None,
        actor: str | None = None,
    ) -> QuotaOf: ...

class BlockingExternal:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def cancelled(self, run_id: str, fence: Fence) -> RunState: ...
    def claim(
        self,
        worker: str,
        *,
        queues: Sequence[str] = ("default",),
        jobs: Sequence[str] | None = None,
        max: int = 1,
        wait: Duration | None = None,
        lease: Duration | None = None,
        held: Held | None = None,
        **description: Unpack[WorkerDescription],
    ) -> list[Assignment]: ...
    def complete(self, run_id: str, fence: Fence, result: Result = None) -> RunState: ...
    def fail(
        self, run_id: str, fence: Fence, error: ErrorOption, *, retry: bool = True, after: Duration | None = None
    ) -> RunState: ...
    def hand_back(self, claimed: Iterable[Assignment]) -> None: ...
    def heartbeat(self, run_id: str, fence: Fence) -> Heartbeat: ...
    def logs(
        self, run_id: str, fence: Fence, lines: Iterable[str | Mapping[str, Any]], *, no: int | None = None
    ) -> None: ...
    def progress(
        self,
        run_id: str,
        fence: Fence,
        percent: Annotated[float, Meta(ge=0, le=100)] | None = None,
        summary: str | None = None,
    ) -> Heartbeat: ...
    def step(
        self, run_id: str, fence: Fence, id: str, state: str, *, result: Result = None, error: ErrorOption | None = None
    ) -> StepState: ...

class BlockingExpectations:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def delete(self, kind: str, name: str, *, actor: str | None = None) -> None: ...
    def find(self, kind: str, name: str) -> Expected | None: ...
    def get(self, kind: str, name: str) -> Expected: ...
    def list(self, *, breached: bool = False) -> Sequence[Expected]: ...
    def replace(
        self, kind: str, name: str, *, actor: str | None = None, **expect: Unpack[ExpectationOptions]
    ) -> Expected: ...
    def update(
        self, kind: str, name: str, *, actor: str | None = None, **expect: Unpack[ExpectationOptions]
    ) -> Expected: ...

class BlockingNotifications:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def create(
        self, name: str, *, owner: str = "api", actor: str | None = None, **options: Unpack[NewNotification]
    ) -> NotificationView: ...
    def delete(self, name: str, *, actor: str | None = None) -> None: ...
    def get(self, name: str) -> NotificationView: ...
    def list(self) -> Sequence[NotificationView]: ...
    def test(self, name: str) -> Json: ...
    def update(
        self, name: str, *, actor: str | None = None, **options: Unpack[NotificationChanges]
    ) -> NotificationView: ...

class BlockingDataJobs:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def create(
        self,
        name: str,
        kind: str | None = None,
        *,
        schedule: Mapping[str, Any] | None = None,
        run: Mapping[str, Any] | None = None,
        owner: str = "api",
        actor: str | None = None,
        **options: Unpack[JobChanges],
    ) -> CreatedJob: ...
    def delete(
        self, name: str, *, force: bool = False, expected_revision: Revisions | None = None, actor: str | None = None
    ) -> None: ...
    def replace(
        self,
        name: str,
        kind: str | None = None,
        *,
        schedule: Mapping[str, Any] | None = None,
        expected_revision: Revisions | None = None,
        actor: str | None = None,
        **options: Unpack[JobChanges],
    ) -> CreatedJob: ...
    def restore(self, name: str, *, actor: str | None = None) -> JobView: ...
    def update(
        self,
        name: str,
        *,
        kind: str | None = None,
        schedule: Mapping[str, Any] | None = None,
        expected_revision: Revisions | None = None,
        actor: str | None = None,
        **options: Unpack[JobChanges],
    ) -> JobView: ...

class BlockingMonitoring:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def overview(self) -> Overview: ...
    def series(self, from_at: From = None, to_at: To = None, step: Duration | None = None) -> Series: ...
    def timeline(
        self, from_at: From = None, to_at: To = None, *, by: str = "schedule", limit: int = 500
    ) -> Timeline: ...
    def upcoming(self, within: Duration = "1h", *, each: int = 10, limit: int = 200) -> UpcomingRuns: ...

class BlockingAttention:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def list(self, *, kind: Kind | None = None, snoozed: bool = False) -> Sequence[Attention]: ...
    def snooze(
        self,
        kind: Kind,
        subject: Subject | None = None,
        length: Duration = "4h",
        *,
        reason: Annotated[str, Meta(max_length=1000, description="Why, for the audit log")] | None = None,
        actor: str | None = None,
    ) -> Attention: ...
    def unsnooze(self, kind: Kind, subject: Subject | None = None, *, actor: str | None = None) -> Unsnoozed: ...

class BlockingErrorGroups:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def list(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        job: str | None = None,
        scope: Scope | tuple[str, str] | None = None,
        all_jobs: bool = False,
        sort: str = "newest",
        search: Annotated[str, Meta(max_length=200)] | None = None,
        limit: Limit = 50,
        cursor: Cursor | None = None,
    ) -> ErrorGroups: ...

class BlockingDatabase:
    def __init__(self, call: Callable[..., Any]) -> None: ...
    def accept(self, *, reason: Why = None, actor: str | None = None) -> DatabaseStanding: ...
    def examine(self) -> Sequence[Check]: ...
    def get(self) -> DatabaseStanding: ...
