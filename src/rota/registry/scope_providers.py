"""Call scope providers, and report what is wrong with them."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from rota.core.schedules.schedule import checked_scopes
from rota.errors import Invalid, did_you_mean
from rota.registry.schedules import ScopeProvider, takes_now
from rota.values.instants import instant
from rota.values.scope import Scope

log = logging.getLogger("rota.scopes")

TIMEOUT = 30.0


Now = Callable[[], Awaitable[int]]
"""Callback that reads the time of the database, in microseconds; called only for providers that take it."""


async def ask(provider: ScopeProvider, now: Now) -> tuple[Scope, ...]:
    """Call a provider and validate its scopes; its exceptions are passed on."""
    call = partial(provider, now=instant(await now())) if takes_now(provider) else provider
    if inspect.iscoroutinefunction(provider):
        async with asyncio.timeout(TIMEOUT):
            return checked_scopes(list(await call()))  # type: ignore[misc]  # it is a coroutine
    answer = await asyncio.to_thread(call)  # no timeout: a thread cannot be stopped, and must not pile up
    return checked_scopes(list(answer))  # type: ignore[arg-type]


def trouble_with(name: str, error: Exception) -> str:
    return storable(f"scope provider {name!r}: {type(error).__name__}: {error}")


def storable(text: str) -> str:
    """Drop what a database would refuse in the text of an error."""
    return text.replace("\0", "").encode(errors="replace").decode()[:2_000]


def warn_of_unknown(schedule: str, name: str, providers: Mapping[str, ScopeProvider]) -> None:
    """Log an unknown provider. Not an error: another process may have it."""
    if name in providers:
        return
    near = did_you_mean(name, providers)
    words = (
        "schedule %r: no scope provider %r is registered in this process: "
        "only processes that have it plan the schedule%s"
    )
    log.warning(words, schedule, name, f"; {near}" if near else "")


async def require_answer(schedule: str, name: str, providers: Mapping[str, ScopeProvider], now: Now) -> None:
    """Call the provider once before a schedule that uses it is stored."""
    if name not in providers:
        warn_of_unknown(schedule, name, providers)
        return
    try:
        await ask(providers[name], now)
    except Exception as error:
        hint = "nothing is stored; it must return pairs such as ('account', '42')"
        raise Invalid(f"schedule {schedule!r}: {trouble_with(name, error)}", hint=hint) from error
