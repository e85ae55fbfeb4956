"""Channels and secret providers of other packages, found by their entry points when they are first used."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from rota.engine.jobs.http_client import NotSent

CHANNELS, SECRETS = "rota.channels", "rota.secrets"
"""Groups of entry points: `send(target, event)`, plain or async, and `read(reference) -> str`."""


@cache
def plugin(group: str, name: str) -> Callable[..., Any]:
    """Load a plugin; nothing is imported before."""
    from importlib.metadata import entry_points  # reads archives and tables: a dozen modules that few apps need

    found = entry_points(group=group)
    for entry in found.select(name=name):
        loaded: Callable[..., Any] = entry.load()
        return loaded
    known = ", ".join(sorted(found.names)) or "none"
    raise NotSent(f"this worker has no {name!r} among the entry points of {group!r}; installed: {known}")


async def call(group: str, address: str, *arguments: object) -> Any:
    """Call the plugin that `NAME/rest` names with the rest; a plain function runs in a thread."""
    name, _, rest = address.partition("/")
    function = plugin(group, name)
    if inspect.iscoroutinefunction(function):
        return await function(rest, *arguments)
    return await asyncio.to_thread(function, rest, *arguments)
