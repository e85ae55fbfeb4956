"""What code declares reaches the database: once, however many processes start with it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from rota.core.alerts.notifications import Notification
from rota.core.limits.quotas import Quota
from rota.errors import BadTrigger, DuplicateSchedule, FollowingRing, UnknownSchedule
from rota.registry.schedules import DeclaredSchedule, ScopeProvider
from rota.registry.scope_providers import warn_of_unknown
from rota.store import Store
from rota.store.schedules.change import Change

log = logging.getLogger("rota.engine")

CODE = "code"


async def declare_schedules(
    store: Store, declared: Iterable[DeclaredSchedule], providers: Mapping[str, ScopeProvider] | None = None
) -> None:
    """New ones are made, changed declarations are applied. What an operator changed since, or paused, stays so."""
    wanted = {one.name: one for one in declared}
    known = await store.schedules.declared(list(wanted))
    for name, one in wanted.items():
        if name in known and known[name][1] != CODE:
            log.error("schedule %r belongs to %s; the one in code is not applied", name, known[name][1])
            continue
        if name in known and known[name][0] == one.fingerprint:
            continue
        if one.definition.provider is not None and providers is not None:
            # It is not asked: no start waits for a provider, or fails by it.
            warn_of_unknown(name, one.definition.provider, providers)
        if name not in known:
            await _create(store, one)
        else:
            change = Change(note="declaration changed", actor=CODE, declared=one.fingerprint)
            await _change(store, one, change)


async def declare_quotas(store: Store, declared: Mapping[str, Quota]) -> None:
    """What a person set instead stays so."""
    for kind, quota in declared.items():
        await store.quotas.update(kind, "", quota, CODE)


async def _change(store: Store, one: DeclaredSchedule, change: Change) -> None:
    try:
        await store.schedules.declare(one.name, one.definition, change)
    except FollowingRing as error:
        log.error("%s; the one in code is not applied", error)
    except UnknownSchedule:  # deleted just now; it is declared, so it is made
        await _create(store, one)


async def _create(store: Store, one: DeclaredSchedule) -> None:
    try:
        await store.schedules.create(one.name, one.definition, CODE, declared=one.fingerprint, actor=CODE)
    except DuplicateSchedule:
        log.debug("schedule %r was made by another process just now", one.name)
    except FollowingRing as error:  # with schedules of others; nobody else has to wait for them to be changed
        log.error("%s; the one in code is not applied", error)
    except BadTrigger as error:  # it is over; the same program started while it was not, and has to start again
        log.error("%s; the one in code is not applied", error.within(f"schedule {one.name!r}"))


async def declare_notifications(store: Store, declared: Iterable[tuple[str, Notification]]) -> None:
    """What a person made or changed stays so: code changes only what is code's."""
    for name, one in declared:
        await store.notifications.save(name, one, CODE, CODE, new=False)
