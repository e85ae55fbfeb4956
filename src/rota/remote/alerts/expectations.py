"""`client.expectations` over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rota.core.alerts.expectations import Expected, checked_kind
from rota.errors import NotExpected
from rota.remote.decode import items, read
from rota.remote.transport import Transport, path_of
from rota.values.durations import worded


class RemoteExpectations:
    """Expectations of jobs and schedules: `kind` is "job" or "schedule", and `name` the name of one.

    All expectations are checked every `ROTA_EXPECT`.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def update(self, kind: str, name: str, *, actor: str | None = None, **expect: Any) -> Expected:
        """Change the given expectations of a job or schedule; None removes one. All its expectations now belong to the
        caller: declarations in code no longer change them."""
        answer = await self._transport.ask("PATCH", _path(kind, name), body=worded(expect), again=True)
        return read(answer.body, Expected)

    async def get(self, kind: str, name: str) -> Expected:
        """Return the expectations of a job or schedule; raise `NotExpected` if there are none."""
        return read((await self._transport.ask("GET", _path(kind, name))).body, Expected)

    async def find(self, kind: str, name: str) -> Expected | None:
        """Return the expectations of a job or schedule, or None if there are none."""
        try:
            return await self.get(kind, name)
        except NotExpected:
            return None

    async def delete(self, kind: str, name: str, *, actor: str | None = None) -> bool:
        """Delete the expectations of a job or schedule, which ends their breaches; return whether there were any.
        Expectations declared in code return when their declaration changes."""
        try:
            await self._transport.ask("DELETE", _path(kind, name))
        except NotExpected:
            return False
        return True

    async def list(self, *, breached: bool = False) -> Sequence[Expected]:
        """List expectations of all jobs and schedules; with `breached`, only those that are not met."""
        query = {"breached": breached}
        return items((await self._transport.ask("GET", path_of("expectations"), query)).body, Expected)


def _path(kind: str, name: str) -> str:
    return path_of("expectations", checked_kind(kind), name)
