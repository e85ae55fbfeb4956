"""Verbs of the client itself: about runs, jobs, queues and the audit trail. Other verbs belong to its parts."""

from __future__ import annotations

from rota.client.jobs.executions import ExecutionVerbs
from rota.client.monitoring.audit import AuditVerbs
from rota.client.monitoring.health import HealthVerbs


class OwnVerbs(ExecutionVerbs, AuditVerbs, HealthVerbs):
    """Verbs that `Client` and `RemoteClient` have themselves, without a part."""
