"""Client of a rota server: the same verbs over HTTP, without a database driver."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable
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

    return _Connected(ready, url)


class _Connected(BlockingClient):
    def __init__(self, ready: Callable[[], Awaitable[Client]], url: str) -> None:
        super().__init__(ready)
        self._url = url

    def __reduce__(self) -> tuple[Callable[..., BlockingClient], tuple[str]]:
        """Pickle the server's address only: a token is a secret, and the process that reads it has its own."""
        return _connected_again, (self._url,)


@functools.cache
def _connected_again(url: str) -> BlockingClient:
    """Connect once in a process, with its ROTA_TOKEN, for handles that came from another one."""
    return connect(url, os.environ.get("ROTA_TOKEN"))
