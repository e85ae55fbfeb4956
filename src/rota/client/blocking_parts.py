"""Synchronous versions of the parts of `Client` (`client.schedules`, …): one line per verb."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rota.core.access.roles import Issued, Token
from rota.core.alerts.expectations import Expected
from rota.core.alerts.notifications import NotificationView
from rota.core.calendar.triggers import Trigger
from rota.core.external.external import Assignment, Heartbeat
from rota.core.jobs.job import JobDefinition
from rota.core.ledger.audit import Event
from rota.core.ledger.backfill import Backfill
from rota.core.ledger.explain_plan_time import Explanation
from rota.core.ledger.occurrences import Occurrence
from rota.core.ledger.verify import Verification
from rota.core.limits.quotas import QuotaOf
from rota.core.monitoring.charts import Series
from rota.core.monitoring.error_groups import ErrorGroups
from rota.core.monitoring.overview import Overview
from rota.core.monitoring.recent_runs import Recent
from rota.core.monitoring.timeline import Timeline
from rota.core.planning.simulation_report import SimulationOptions, SimulationReport
from rota.core.progress.steps import StepState
from rota.core.runs.run import MadeJob, RunError
from rota.core.schedules.diff import Difference
from rota.core.schedules.preview import DocumentPreview, Fire
from rota.core.schedules.schedule import Schedule
from rota.core.states import RunState
from rota.core.workers.worker import Worker
from rota.values.durations import Duration

if TYPE_CHECKING:  # clients of a server must not import the store
    from rota.client.client import Client

T = TypeVar("T")


class Call(Protocol):
    """Function that runs a verb of the async client and waits for its result."""

    def __call__(self, verb: Callable[[Client], Coroutine[Any, Any, T]]) -> T: ...


class BlockingSchedules:
    """Synchronous `client.schedules`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def create(self, name: str, job: str, trigger: Trigger, **options: Any) -> Schedule:
        return self._call(lambda client: client.schedules.create(name, job, trigger, **options))

    def update(self, name: str, **changes: Any) -> Schedule:
        return self._call(lambda client: client.schedules.update(name, **changes))

    def delete(self, name: str, *, actor: str | None = None) -> None:
        return self._call(lambda client: client.schedules.delete(name, actor=actor))

    def get(self, name: str) -> Schedule:
        return self._call(lambda client: client.schedules.get(name))

    def list(self, **filters: Any) -> Sequence[Schedule]:
        return self._call(lambda client: client.schedules.list(**filters))

    def pause(self, name: str, **options: Any) -> Schedule:
        return self._call(lambda client: client.schedules.pause(name, **options))

    def resume(self, name: str, *, catch_up: str = "skip", actor: str | None = None) -> Schedule:
        return self._call(lambda client: client.schedules.resume(name, catch_up=catch_up, actor=actor))

    def enable(self, name: str, *, actor: str | None = None) -> Schedule:
        return self._call(lambda client: client.schedules.enable(name, actor=actor))

    def disable(self, name: str, *, actor: str | None = None) -> Schedule:
        return self._call(lambda client: client.schedules.disable(name, actor=actor))

    def trigger(self, name: str, **options: Any) -> Sequence[str]:
        return self._call(lambda client: client.schedules.trigger(name, **options))

    def preview(self, name: str, count: int = 10, *, after: datetime | None = None) -> Sequence[Fire]:
        return self._call(lambda client: client.schedules.preview(name, count, after=after))

    def preview_document(self, document: Mapping[str, Any], count: int = 10, **options: Any) -> DocumentPreview:
        return self._call(lambda client: client.schedules.preview_document(document, count, **options))

    def simulate(
        self, name: str, span: Duration = "1d", assumptions: SimulationOptions | None = None, **changes: Any
    ) -> SimulationReport:
        return self._call(lambda client: client.schedules.simulate(name, span, assumptions, **changes))

    def explain(self, name: str, at: datetime | None = None) -> Explanation:
        return self._call(lambda client: client.schedules.explain(name, at))

    def occurrences(self, name: str, **options: Any) -> Sequence[Occurrence]:
        return self._call(lambda client: client.schedules.occurrences(name, **options))

    def recent(self, names: Sequence[str], limit: int = 30) -> Mapping[str, Recent]:
        return self._call(lambda client: client.schedules.recent(names, limit))

    def events(self, name: str) -> Sequence[Event]:
        return self._call(lambda client: client.schedules.events(name))

    def verify(self, name: str, *, thorough: bool = True) -> Verification:
        return self._call(lambda client: client.schedules.verify(name, thorough=thorough))

    def backfill(self, name: str, from_at: datetime, to_at: datetime, **options: Any) -> Backfill:
        return self._call(lambda client: client.schedules.backfill(name, from_at, to_at, **options))

    def plan_documents(self, documents: Iterable[Mapping[str, Any]], owner: str) -> Sequence[Difference]:
        return self._call(lambda client: client.schedules.plan_documents(documents, owner))

    def apply_documents(
        self, documents: Iterable[Mapping[str, Any]], owner: str, *, actor: str | None = None
    ) -> Sequence[Difference]:
        return self._call(lambda client: client.schedules.apply_documents(documents, owner, actor=actor))


class BlockingExternal:
    """Synchronous `client.external`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def claim(self, worker: str, **options: Any) -> list[Assignment]:
        return self._call(lambda client: client.external.claim(worker, **options))

    def hand_back(self, claimed: Iterable[Assignment]) -> None:
        return self._call(lambda client: client.external.hand_back(claimed))

    def heartbeat(self, run_id: str, fence: int) -> Heartbeat:
        return self._call(lambda client: client.external.heartbeat(run_id, fence))

    def progress(self, run_id: str, fence: int, percent: float | None = None, summary: str | None = None) -> Heartbeat:
        return self._call(lambda client: client.external.progress(run_id, fence, percent, summary))

    def step(self, run_id: str, fence: int, id: str, state: str, **outcome: Any) -> StepState:
        return self._call(lambda client: client.external.step(run_id, fence, id, state, **outcome))

    def logs(self, run_id: str, fence: int, lines: Iterable[str | Mapping[str, Any]], *, no: int | None = None) -> None:
        return self._call(lambda client: client.external.logs(run_id, fence, lines, no=no))

    def complete(self, run_id: str, fence: int, result: Any = None) -> RunState:
        return self._call(lambda client: client.external.complete(run_id, fence, result))

    def fail(self, run_id: str, fence: int, error: str | RunError | Mapping[str, Any], **options: Any) -> RunState:
        return self._call(lambda client: client.external.fail(run_id, fence, error, **options))

    def cancelled(self, run_id: str, fence: int) -> RunState:
        return self._call(lambda client: client.external.cancelled(run_id, fence))


class BlockingWorkers:
    """Synchronous `client.workers`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def get(self, id_or_name: str) -> Worker:
        return self._call(lambda client: client.workers.get(id_or_name))

    def find(self, id_or_name: str) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.find(id_or_name))

    def drain(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.drain(id_or_name, actor=actor))

    def resume(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.resume(id_or_name, actor=actor))

    def stop(self, id_or_name: str, *, actor: str | None = None) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.stop(id_or_name, actor=actor))

    def update(self, id_or_name: str, **settings: Any) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.update(id_or_name, **settings))

    def list(self) -> Sequence[Worker]:
        return self._call(lambda client: client.workers.list())


class BlockingTokens:
    """Synchronous `client.tokens`, without the checks that only servers make."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def create(self, name: str, role: str, **options: Any) -> Issued:
        return self._call(lambda client: client.tokens.create(name, role, **options))

    def list(self) -> Sequence[Token]:
        return self._call(lambda client: client.tokens.list())

    def revoke(self, id_or_name: str, *, actor: str | None = None) -> Token:
        return self._call(lambda client: client.tokens.revoke(id_or_name, actor=actor))


class BlockingQuotas:
    """Synchronous `client.quotas`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def update(self, kind: str, id: str | None = None, **quota: Any) -> QuotaOf:
        return self._call(lambda client: client.quotas.update(kind, id, **quota))

    def get(self, kind: str, id: str | None = None) -> QuotaOf:
        return self._call(lambda client: client.quotas.get(kind, id))

    def delete(self, kind: str, id: str | None = None) -> None:
        return self._call(lambda client: client.quotas.delete(kind, id))

    def list(self) -> Sequence[QuotaOf]:
        return self._call(lambda client: client.quotas.list())


class BlockingExpectations:
    """Synchronous `client.expectations`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def update(self, kind: str, name: str, **expect: Any) -> Expected:
        return self._call(lambda client: client.expectations.update(kind, name, **expect))

    def get(self, kind: str, name: str) -> Expected:
        return self._call(lambda client: client.expectations.get(kind, name))

    def find(self, kind: str, name: str) -> Expected | None:
        return self._call(lambda client: client.expectations.find(kind, name))

    def delete(self, kind: str, name: str, *, actor: str | None = None) -> bool:
        return self._call(lambda client: client.expectations.delete(kind, name, actor=actor))

    def list(self, *, breached: bool = False) -> Sequence[Expected]:
        return self._call(lambda client: client.expectations.list(breached=breached))


class BlockingNotifications:
    """Synchronous `client.notifications`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def create(self, name: str, **options: Any) -> NotificationView:
        return self._call(lambda client: client.notifications.create(name, **options))

    def update(self, name: str, **options: Any) -> NotificationView:
        return self._call(lambda client: client.notifications.update(name, **options))

    def delete(self, name: str, *, actor: str | None = None) -> None:
        return self._call(lambda client: client.notifications.delete(name, actor=actor))

    def get(self, name: str) -> NotificationView:
        return self._call(lambda client: client.notifications.get(name))

    def list(self) -> Sequence[NotificationView]:
        return self._call(lambda client: client.notifications.list())

    def test(self, name: str) -> Any:
        return self._call(lambda client: client.notifications.test(name))


class BlockingDataJobs:
    """Synchronous `client.data_jobs`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def create(self, name: str, kind: str, **options: Any) -> JobDefinition:
        return self._call(lambda client: client.data_jobs.create(name, kind, **options))

    def create_with(self, name: str, kind: str, options: dict[str, Any], **more: Any) -> MadeJob:
        return self._call(lambda client: client.data_jobs.create_with(name, kind, options, **more))

    def update(self, name: str, **options: Any) -> JobDefinition:
        return self._call(lambda client: client.data_jobs.update(name, **options))

    def delete(self, name: str, *, force: bool = False, actor: str | None = None) -> None:
        return self._call(lambda client: client.data_jobs.delete(name, force=force, actor=actor))


class BlockingMonitoring:
    """Synchronous `client.monitoring`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def overview(self) -> Overview:
        return self._call(lambda client: client.monitoring.overview())

    def oldest_queued(self) -> dict[str, datetime]:
        return self._call(lambda client: client.monitoring.oldest_queued())

    def series(
        self, from_at: datetime | None = None, to_at: datetime | None = None, step: Duration | None = None
    ) -> Series:
        return self._call(lambda client: client.monitoring.series(from_at, to_at, step))

    def timeline(
        self, from_at: datetime | None = None, to_at: datetime | None = None, *, by: str = "schedule", limit: int = 500
    ) -> Timeline:
        return self._call(lambda client: client.monitoring.timeline(from_at, to_at, by=by, limit=limit))


class BlockingErrorGroups:
    """Synchronous `client.error_groups`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def list(self, **filters: Any) -> ErrorGroups:
        return self._call(lambda client: client.error_groups.list(**filters))
