"""Run jobs on time, and know what happened."""

import importlib
from typing import TYPE_CHECKING

from rota.version import __version__

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.blocking import BlockingClient
    from rota.client import Client, Order
    from rota.config import Config
    from rota.core.dependencies import Follows
    from rota.core.jobstatus import JobState, JobStatus
    from rota.core.model import Attempt, Enqueued, JobDefinition, Run, RunError, RunFilter
    from rota.core.replicas import Replica, Replicas
    from rota.core.retry import Exponential
    from rota.core.schedules import Schedule
    from rota.core.scope import Scope
    from rota.core.signals import Cancelled, Fail, Retry, Snooze
    from rota.core.states import Outcome, RunState
    from rota.core.statistics import JobStats
    from rota.core.triggers import after, cron, every, following, once
    from rota.core.unique import Unique
    from rota.engine.context import Context, SyncContext
    from rota.errors import BadPayload, Conflict, Invalid, LeaseLost, NotFound, RotaError, Unavailable
    from rota.job import Job

__all__ = [
    "Attempt",
    "BadPayload",
    "BlockingClient",
    "Cancelled",
    "Client",
    "Config",
    "Conflict",
    "Context",
    "Enqueued",
    "Exponential",
    "Fail",
    "Follows",
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
    "cron",
    "every",
    "following",
    "once",
]

# Loaded at their first use: `rota --help` needs none of it.
_HOMES = {
    "rota.app": ("Rota",),
    "rota.blocking": ("BlockingClient",),
    "rota.client": ("Client", "Order"),
    "rota.config": ("Config",),
    "rota.core.dependencies": ("Follows",),
    "rota.core.jobstatus": ("JobState", "JobStatus"),
    "rota.core.model": ("Attempt", "Enqueued", "JobDefinition", "Run", "RunError", "RunFilter"),
    "rota.core.replicas": ("Replica", "Replicas"),
    "rota.core.retry": ("Exponential",),
    "rota.core.schedules": ("Schedule",),
    "rota.core.scope": ("Scope",),
    "rota.core.signals": ("Cancelled", "Fail", "Retry", "Snooze"),
    "rota.core.states": ("Outcome", "RunState"),
    "rota.core.statistics": ("JobStats",),
    "rota.core.triggers": ("after", "cron", "every", "following", "once"),
    "rota.core.unique": ("Unique",),
    "rota.engine.context": ("Context", "SyncContext"),
    "rota.errors": ("BadPayload", "Conflict", "Invalid", "LeaseLost", "NotFound", "RotaError", "Unavailable"),
    "rota.job": ("Job",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'rota' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
