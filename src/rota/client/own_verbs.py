"""Verbs of the client itself: about runs, jobs, queues and the audit trail. Other verbs belong to its parts."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime

from rota.client.monitoring.audit import AuditVerbs
from rota.client.runs.runs import RunVerbs


class OwnVerbs(RunVerbs, AuditVerbs):
    """Verbs that `Client` and `RemoteClient` have themselves, without a part."""

    @abstractmethod
    async def time(self) -> datetime:
        """Return the database's current time."""

    @abstractmethod
    async def metrics(self) -> str:
        """Return the process's counters and the database's gauges in Prometheus format.

        A database outage is reported as a metric.
        """

    @abstractmethod
    async def check_ready(self) -> None:
        """Raise unless the database answers and its schema fits this version."""

    @abstractmethod
    async def prune(self) -> int:
        """Delete runs past their job's retention; return how many."""
