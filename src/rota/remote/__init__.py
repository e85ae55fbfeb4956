"""Client of a rota server: the same verbs over HTTP, without a database driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rota.client.blocking import BlockingClient
from rota.remote.client import RemoteClient
from rota.remote.problems import NotOffered
from rota.values.durations import Duration

if TYPE_CHECKING:
    from rota.client.client import Client

__all__ = ["NotOffered", "RemoteClient", "connect"]


def connect(url: str, token: str | None = None, timeout: Duration = "15s") -> BlockingClient:
    """Return a synchronous client of a server. Nothing is sent before the first call. Close it when done."""
    client = RemoteClient(url, token, timeout)

    async def ready() -> Client:
        return cast("Client", client)  # tests/shape/test_remote.py compares their verbs

    return BlockingClient(ready)
