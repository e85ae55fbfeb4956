"""`client.expectations` of a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rota.core.alerts.expectations import Expected, checked_kind
from rota.errors import NotExpected
from rota.remote.decode import items, read
from rota.remote.transport import Transport, path_of
from rota.values.durations import worded


class RemoteExpectations:
    """`kind` is "job" or "schedule", `name` that of one. A watchman looks after all of them every `ROTA_EXPECT`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def update(self, kind: str, name: str, *, actor: str | None = None, **expect: Any) -> Expected:
        """Only what is given changes, and None takes an expectation away. All of them are the caller's from now on:
        what code declares does not change them any more."""
        answer = await self._transport.ask("PATCH", _path(kind, name), body=worded(expect), again=True)
        return read(answer.body, Expected)

    async def get(self, kind: str, name: str) -> Expected:
        return read((await self._transport.ask("GET", _path(kind, name))).body, Expected)

    async def find(self, kind: str, name: str) -> Expected | None:
        """None if nothing is expected of it."""
        try:
            return await self.get(kind, name)
        except NotExpected:
            return None

    async def delete(self, kind: str, name: str, *, actor: str | None = None) -> bool:
        """Whether anything was expected. Its breaches end. What code declares is back when its declaration changes."""
        try:
            await self._transport.ask("DELETE", _path(kind, name))
        except NotExpected:
            return False
        return True

    async def list(self, *, breached: bool = False) -> Sequence[Expected]:
        """Of all jobs and schedules of which something is expected; `breached`: only where something is not met."""
        query = {"breached": breached}
        return items((await self._transport.ask("GET", path_of("expectations"), query)).body, Expected)


def _path(kind: str, name: str) -> str:
    return path_of("expectations", checked_kind(kind), name)
