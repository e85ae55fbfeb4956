"""`Client`: every query and command. Everything but the engine reaches the store through it."""

from __future__ import annotations

from copy import copy
from typing import NoReturn

from rota.client.access.tokens import TokensClient
from rota.client.alerts.expectations import ExpectationsClient
from rota.client.alerts.notifications import NotificationsClient
from rota.client.changes import ChangePoller
from rota.client.external.external import ExternalClient
from rota.client.jobs.data_jobs import DataJobsClient
from rota.client.limits.quotas import QuotasClient
from rota.client.monitoring.attention import AttentionClient
from rota.client.monitoring.database import DatabaseClient
from rota.client.monitoring.doctor import examined
from rota.client.monitoring.error_groups import ErrorGroupsClient
from rota.client.monitoring.monitoring import MonitoringClient
from rota.client.monitoring.overview_reader import OverviewReader
from rota.client.own_verbs import OwnVerbs
from rota.client.runs.bulk import Bulk
from rota.client.runs.runs import MOST_LISTED
from rota.client.schedules.schedules import SchedulesClient
from rota.client.workers.workers import WorkersClient
from rota.config import Config
from rota.core.runs.options import (
    Order,
    scope_of,
)
from rota.core.runs.run import Enqueued, NewRun
from rota.engine.jobs.notify import Deliveries
from rota.engine.loops.gauge_reader import GaugeReader
from rota.engine.loops.janitor import prune
from rota.engine.observability.meters import Meters
from rota.observability import tracing
from rota.registry.jobs import Registry
from rota.store import Store
from rota.store.databases.batcher import Batcher
from rota.values.json import Limits
from rota.values.scope import Scope

_MOST_VERIFIED = 100
"""Most schedules whose ledgers a check through the client verifies; `rota doctor` verifies more."""

__all__ = ["MOST_LISTED", "Client", "Order"]


class Client(OwnVerbs):
    """Asynchronous client: verbs about runs and jobs, and parts for everything else (`client.schedules`, …)."""

    def __init__(self, store: Store, registry: Registry, config: Config, meters: Meters | None = None) -> None:
        self.store = store
        self.scope = None
        self.registry = registry
        self.config = config
        self.meters = meters or Meters()
        reader = OverviewReader(store, config)
        self._gauges = GaugeReader(store, config.lease, reader.counts)
        self._traced = config.tracing and tracing.turn_on()
        self._limits = Limits(config.max_payload)
        self.schedules = SchedulesClient(store, registry, config, self._definition)
        self._bulk = Bulk(store, self._all_again, self.meters)
        self._hints = ChangePoller(store)
        self.workers = WorkersClient(store)
        self.tokens = TokensClient(store)
        self.quotas = QuotasClient(store)
        self.external = ExternalClient(store, config, self.meters)
        self.expectations = ExpectationsClient(store, registry)
        self.notifications = NotificationsClient(store, Deliveries(store, config))
        self.data_jobs = DataJobsClient(store, registry, self.schedules, self._of_stored, self.meters)
        self.monitoring = MonitoringClient(store, config, reader)
        self.attention = AttentionClient(store, reader)
        self.error_groups = ErrorGroupsClient(store)
        self.database = DatabaseClient(store, lambda: examined(store, config, most_verified=_MOST_VERIFIED))
        self._gatherer: Batcher[NewRun, Enqueued] = Batcher(store.enqueue)
        self._builders = {}
        self.owner: object = None
        """Keeps the object alive that closes the store when it is garbage-collected."""

    def __copy__(self) -> Client:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __reduce__(self) -> NoReturn:
        """Refuse: another process has no way to this client's database."""
        from pickle import PicklingError  # imported late: whoever pickles has it already

        raise PicklingError("a client cannot be pickled: keep the id of its handle, and call `app.handle(id)` there")

    def within(self, scope: Scope | tuple[str, str]) -> Client:
        """Return a client that only knows the runs and keys of one scope.

        Jobs, queues, schedules and workers have no scope and stay visible: refuse them to callers who must not see
        them.
        """
        scoped = copy(self)
        scoped.scope = scope_of(scope)
        scoped.door = None  # its handles stay within the scope
        scoped.error_groups = ErrorGroupsClient(self.store, scoped.scope)
        scoped._bulk = Bulk(self.store, scoped._all_again, self.meters)
        return scoped

    async def close(self) -> None:
        """Close the client's database connections."""
        await self._hints.close()
        await self.store.close()

    async def metrics(self) -> str:
        """Return this process's counters and the database's gauges in Prometheus format. A database outage is reported
        as a metric."""
        return self.meters.text(await self._gauges.read())

    async def prune(self) -> int:
        """Delete runs past their job's retention; return how many."""
        pruned = await prune(self.store)
        self.meters.pruned.add(pruned)
        return pruned
