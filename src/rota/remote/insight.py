"""`client.insight` of a server."""

from __future__ import annotations

from rota.core.overview import Overview
from rota.remote.transport import Transport, path_of
from rota.remote.values import read


class RemoteInsight:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def overview(self) -> Overview:
        """How full it is, what came of the last day, what needs attention, what comes next.

        An answer serves everybody who asks within a second and a half.
        """
        return read((await self._transport.ask("GET", path_of("overview"))).body, Overview)
