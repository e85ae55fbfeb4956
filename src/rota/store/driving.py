"""Coroutines that never wait, run to their end by whoever has no event loop."""

from __future__ import annotations

from typing import Any


def drive(body: Any) -> Any:
    """Run a coroutine that never suspends."""
    try:
        body.send(None)
    except StopIteration as stop:
        return stop.value
    body.close()
    raise RuntimeError("a transaction's body waited for something other than its statements")
