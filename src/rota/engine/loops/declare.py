"""Write to the database what code declares: schedules, quotas and notifications.

Idempotent for any number of processes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from rota.core.alerts.notifications import Notification
from rota.core.limits.quotas import Quota
from rota.core.schedules.revisions import Change
from rota.errors import BadTrigger, DuplicateSchedule, FollowingRing, UnknownSchedule
from rota.registry.schedules import DeclaredSchedule, ScopeProvider
from rota.registry.scope_providers import warn_of_unknown
from rota.store import Store

log = logging.getLogger("rota.engine")

CODE = "code"


async def declare_schedules(
    store: Store, declared: Iterable[DeclaredSchedule], providers: Mapping[str, ScopeProvider] | None = None
) -> None:
    """Create new schedules and apply changed declarations. Keep what an operator changed or paused since."""
    schedules = {schedule.name: schedule for schedule in declared}
    stored = await store.schedules.declared(list(schedules))
    for name, schedule in schedules.items():
        if name in stored and stored[name][1] != CODE:
            log.error("schedule %r is owned by %s; the declaration in code is not applied", name, stored[name][1])
            continue
        if name in stored and schedule.is_applied(stored[name][0]):
            # An equal fingerprint of an older program is left: it may still run, and would take ours for a change.
            continue
        if schedule.definition.provider is not None and providers is not None:
            # The provider is not called here: a slow or failing one must not delay the start of the process.
            warn_of_unknown(name, schedule.definition.provider, providers)
        if name not in stored:
            await _create(store, schedule)
        else:
            change = Change(note="declaration changed", actor=CODE, declared=schedule.fingerprint)
            await _change(store, schedule, change)


async def declare_quotas(store: Store, declared: Mapping[str, Quota]) -> None:
    """Write quotas from code. A quota that a person set has precedence."""
    for kind, quota in declared.items():
        await store.quotas.update(kind, "", quota, CODE)


async def _change(store: Store, schedule: DeclaredSchedule, change: Change) -> None:
    try:
        await store.schedules.declare(schedule.name, schedule.definition, change)
    except FollowingRing as error:
        log.error("%s; the declaration in code is not applied", error)
    except UnknownSchedule:  # race: deleted just now; it is declared, so create it again
        await _create(store, schedule)


async def _create(store: Store, schedule: DeclaredSchedule) -> None:
    try:
        await store.schedules.create(
            schedule.name, schedule.definition, CODE, declared=schedule.fingerprint, actor=CODE
        )
    except DuplicateSchedule:
        log.debug("schedule %r was just created by another process", schedule.name)
    except FollowingRing as error:  # a cycle with schedules that are not code's must not stop this process
        log.error("%s; the declaration in code is not applied", error)
    except BadTrigger as error:  # the trigger has expired; the program started before, so it must start now, too
        log.error("%s; the declaration in code is not applied", error.within(f"schedule {schedule.name!r}"))


async def declare_notifications(store: Store, declared: Iterable[tuple[str, Notification]]) -> None:
    """Write notifications from code. Those that a person created or changed stay as they are."""
    for name, notification in declared:
        await store.notifications.save(name, notification, CODE, CODE, new=False)
