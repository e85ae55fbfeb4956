"""Run jobs on time, and know what happened."""

from typing import TYPE_CHECKING

from rota.late import late_name
from rota.version import __version__

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.client.blocking import BlockingClient
    from rota.client.client import Client, Order
    from rota.client.handle import Handle
    from rota.config import Config
    from rota.core.calendar.triggers import after, cron, every, following, once
    from rota.core.jobs.job import JobDefinition
    from rota.core.jobs.retry import Exponential
    from rota.core.jobs.status import JobState, JobStatus
    from rota.core.jobs.unique import Unique
    from rota.core.monitoring.statistics import JobStats
    from rota.core.progress.control_flow import Cancelled, Fail, Retry, Snooze
    from rota.core.runs.dependencies import Follows
    from rota.core.runs.run import Attempt, Enqueued, Run, RunError, RunFilter
    from rota.core.schedules.schedule import Schedule
    from rota.core.states import Outcome, RunState
    from rota.core.workers.replicas import Replica, Replicas
    from rota.engine.handlers.context import Context, SyncContext
    from rota.errors import BadPayload, Conflict, Invalid, LeaseLost, NotFound, RotaError, RunFailed, Unavailable
    from rota.flow import chain, group
    from rota.job import AsyncJob, Job
    from rota.registry.hooks.enqueue_middleware import Enqueue
    from rota.registry.hooks.lifespan import injected
    from rota.registry.hooks.middleware import Call
    from rota.values.scope import Scope

__all__ = [
    "AsyncJob",
    "Attempt",
    "BadPayload",
    "BlockingClient",
    "Call",
    "Cancelled",
    "Client",
    "Config",
    "Conflict",
    "Context",
    "Enqueue",
    "Enqueued",
    "Exponential",
    "Fail",
    "Follows",
    "Handle",
    "Invalid",
    "Job",
    "JobDefinition",
    "JobState",
    "JobStats",
    "JobStatus",
    "LeaseLost",
    "NotFound",
    "Order",
    "Outcome",
    "Replica",
    "Replicas",
    "Retry",
    "Rota",
    "RotaError",
    "Run",
    "RunError",
    "RunFailed",
    "RunFilter",
    "RunState",
    "Schedule",
    "Scope",
    "Snooze",
    "SyncContext",
    "Unavailable",
    "Unique",
    "__version__",
    "after",
    "chain",
    "cron",
    "every",
    "following",
    "group",
    "injected",
    "once",
]

# Imported at their first use, to keep `rota --help` fast.
_HOMES = {
    "rota.app": ("Rota",),
    "rota.flow": ("chain", "group"),
    "rota.client.blocking": ("BlockingClient",),
    "rota.client.client": ("Client", "Order"),
    "rota.client.handle": ("Handle",),
    "rota.config": ("Config",),
    "rota.core.runs.dependencies": ("Follows",),
    "rota.core.jobs.status": ("JobState", "JobStatus"),
    "rota.core.jobs.job": ("JobDefinition",),
    "rota.core.runs.run": ("Attempt", "Enqueued", "Run", "RunError", "RunFilter"),
    "rota.core.workers.replicas": ("Replica", "Replicas"),
    "rota.core.jobs.retry": ("Exponential",),
    "rota.core.schedules.schedule": ("Schedule",),
    "rota.values.scope": ("Scope",),
    "rota.core.progress.control_flow": ("Cancelled", "Fail", "Retry", "Snooze"),
    "rota.core.states": ("Outcome", "RunState"),
    "rota.core.monitoring.statistics": ("JobStats",),
    "rota.core.calendar.triggers": ("after", "cron", "every", "following", "once"),
    "rota.core.jobs.unique": ("Unique",),
    "rota.engine.handlers.context": ("Context", "SyncContext"),
    "rota.errors": (
        "BadPayload",
        "Conflict",
        "Invalid",
        "LeaseLost",
        "NotFound",
        "RotaError",
        "RunFailed",
        "Unavailable",
    ),
    "rota.job": ("AsyncJob", "Job"),
    "rota.registry.hooks.enqueue_middleware": ("Enqueue",),
    "rota.registry.hooks.lifespan": ("injected",),
    "rota.registry.hooks.middleware": ("Call",),
}


def __getattr__(name: str) -> object:
    return late_name(globals(), _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
