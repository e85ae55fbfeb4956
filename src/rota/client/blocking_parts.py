"""Synchronous versions of the client's parts, made from their methods.

`blocking_parts.pyi` has their signatures, for editors and type checkers; `python -m tools.stubs` writes it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from rota.client.parts import PARTS

_OF_SERVERS = {
    "prepare",
    "enqueue_shown",
    "define",
    "check",
    "check_session",
    "open_session",
    "close_session",
    "note_refused",
}
"""Methods that only the REST API calls: others get what comes of them."""


def class_name(part: str) -> str:
    """Return the name of a part's synchronous class: `BlockingErrorGroups`."""
    return "Blocking" + ("".join(word.capitalize() for word in part.split("_")) or "Verbs")


def verbs_in(kind: type) -> dict[str, Callable[..., Any]]:
    """Return the methods that have a synchronous version: public coroutine functions."""
    methods = inspect.getmembers(kind, inspect.iscoroutinefunction)
    return {name: method for name, method in methods if not name.startswith("_") and name not in _OF_SERVERS}


def _blocking(part: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that runs a verb of the asynchronous client and waits for its result."""

    @functools.wraps(method)
    def call(self: Any, *positional: Any, **named: Any) -> Any:
        def verb(client: Any) -> Any:
            return getattr(getattr(client, part) if part else client, name)(*positional, **named)

        return self._call(verb)

    return call


class _Part:
    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call


for _part, _kind in PARTS.items():
    _base = (_Part,) if _part else ()
    _methods = {name: _blocking(_part, name, method) for name, method in verbs_in(_kind).items()}
    globals()[class_name(_part)] = type(
        class_name(_part), _base, {"__doc__": _kind.__doc__, "__module__": __name__, **_methods}
    )
