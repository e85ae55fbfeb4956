"""`client.monitoring` over HTTP."""

from __future__ import annotations

from datetime import datetime

import msgspec

from rota.client.monitoring.monitoring import MonitoringClient
from rota.remote.decode import items
from rota.remote.transport import path_of
from rota.remote.verbs import Remote


class _Queue(msgspec.Struct):
    queue: str
    oldest_at: datetime | None = None


class RemoteMonitoring(Remote, MonitoringClient):
    """Data for dashboards: overview, charts and timeline."""

    async def oldest_queued(self) -> dict[str, datetime]:
        """Return, for each queue, since when its longest-waiting run has been claimable. Queues without such a run are
        left out."""
        queues = items((await self._transport.ask("GET", path_of("queues"))).body, _Queue)
        return {queue.queue: queue.oldest_at for queue in queues if queue.oldest_at is not None}
