"""`client.error_groups` over HTTP."""

from __future__ import annotations

from datetime import datetime

from rota.core.monitoring.error_groups import ErrorGroups
from rota.core.runs.options import scope_of
from rota.remote.decode import read
from rota.remote.transport import Transport, path_of
from rota.values.scope import Scope


class RemoteErrorGroups:
    """Failed runs grouped by error."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        job: str | None = None,
        scope: Scope | tuple[str, str] | None = None,
        limit: int = 50,
    ) -> ErrorGroups:
        """Group the runs that failed, timed out or expired by job and error fingerprint, most recent group first.

        Covers the last day unless `since` and `until` are given, and at most the newest 10 000 of those runs.
        """
        only_scope = None if scope is None else scope_of(scope)
        query = {
            "since": since,
            "until": until,
            "job": job,
            "scope": None if only_scope is None else f"{only_scope.kind}/{only_scope.id}",
            "limit": limit,
        }
        return read((await self._transport.ask("GET", path_of("error-groups"), query)).body, ErrorGroups)
