"""Run jobs on time, once, and know what happened."""

from rota.app import Rota
from rota.blocking import BlockingClient
from rota.client import Client, Order
from rota.config import Config
from rota.core.model import Attempt, Enqueued, JobDefinition, Run, RunError, RunFilter
from rota.core.retry import Exponential
from rota.core.scope import Scope
from rota.core.signals import Cancelled, Fail, Retry, Snooze
from rota.core.states import Outcome, RunState
from rota.core.unique import Unique
from rota.engine.context import Context
from rota.errors import Conflict, Invalid, LeaseLost, NotFound, RotaError, Unavailable
from rota.job import Job
from rota.version import __version__

__all__ = [
    "Attempt",
    "BlockingClient",
    "Cancelled",
    "Client",
    "Config",
    "Conflict",
    "Context",
    "Enqueued",
    "Exponential",
    "Fail",
    "Invalid",
    "Job",
    "JobDefinition",
    "LeaseLost",
    "NotFound",
    "Order",
    "Outcome",
    "Retry",
    "Rota",
    "RotaError",
    "Run",
    "RunError",
    "RunFilter",
    "RunState",
    "Scope",
    "Snooze",
    "Unavailable",
    "Unique",
    "__version__",
]
