"""Notifications: create, change and delete them, and enqueue the runs that deliver a signal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from rota.core.alerts.budgets import HOUR, Budget, Held, Window, admit, budgets_of, digest_of
from rota.core.alerts.notifications import (
    JOBS,
    Notification,
    NotificationView,
    changed_notification,
    event_of,
    shown_secret,
    shown_to,
)  # fmt: skip
from rota.core.alerts.signals import Signal
from rota.core.jobs.job import JobDefinition
from rota.core.jobs.secrets import without_path
from rota.core.runs.options import new_run
from rota.core.runs.run import Run, RunError
from rota.errors import Conflict, UnknownNotification, UnknownRun
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.store.runs import enqueue, read
from rota.values.instants import instant
from rota.values.json import Json

log = logging.getLogger("rota.messenger")

LISTENER = "notification"
_EVERYTHING = "*"
_NOBODY = ""


class Stored(NamedTuple):
    """A notification's definition, its owner, and whether it is enabled."""

    definition: Notification
    owner: str
    enabled: bool


async def heed_schedule(tx: Tx, schedule: str, job: str | None = None) -> None:
    """Listen to the ends of a schedule's job for every notification that names the schedule.

    Called when a schedule is created, or gets another `job`.
    """
    names = [name for name, stored in (await _all(tx)).items() if schedule in stored.definition.schedules]
    if names and job is not None:
        await tx.fetch("add_listeners", [(job, LISTENER, name) for name in names])
    elif names:
        await tx.fetch("heed_schedules", [(name, schedule) for name in names])


async def tell(tx: Tx, heard: Sequence[tuple[Signal, Sequence[str]]], new_id: Callable[[], str]) -> int:
    """Enqueue a delivery run for each notification that matches a signal.

    `heard` pairs each signal with the names of the notifications that listened. Return the number of runs.
    """
    if not any(names for _, names in heard):
        return 0
    enabled = {name: stored.definition for name, stored in (await _all(tx)).items() if stored.enabled}
    hooks = {definition.hook for definition in enabled.values()}
    matches = [
        (s, name)
        for s, names in heard
        for name in names
        # Hooks are not told of hooks: each would tell the others for ever.
        if name in enabled and enabled[name].matches(s) and not (enabled[name].hook and s.job in hooks)
    ]
    if not matches:
        return 0
    jobs = {name: await _job(tx, name, enabled[name]) for _, name in matches}
    ((now,),) = await tx.fetch("now")
    deliveries, runs = [], await _runs(tx, [signal for signal, _ in matches])
    budgets = {signal.no: budgets_of(signal, _error_of(runs.get(signal.subject))) for signal, _ in matches}
    windows = await _windows(tx, {(name, budget.key) for signal, name in matches for budget in budgets[signal.no]})
    for signal, name in matches:
        job = jobs[name]
        if job is None:
            continue
        hook, at_most = enabled[name].hook, enabled[name].at_most
        admitted = admit(windows.setdefault(name, {}), budgets[signal.no], now, at_most, per_error=hook is None)
        if admitted.is_sent:
            id = new_id()
            event = event_of(signal, runs.get(signal.subject), enabled[name], id, admitted.held)
            told: dict[str, Json] = {"event": event}
            if hook is None:
                told["notification"] = name
            deliveries.append(new_run(job, id, msgspec.json.encode(told).decode(), {"tags": [name]}))
    rows = [
        (name, key, window.since, window.told, window.held)
        for name in sorted(windows)
        for key, window in sorted(windows[name].items())
    ]
    if rows:
        await tx.fetch("tell", rows)
    if deliveries:
        await enqueue.enqueue(tx, deliveries)
    return len(deliveries)


async def _job(tx: Tx, name: str, notification: Notification) -> JobDefinition | None:
    """Return the job whose runs tell of it; None if the application has that job no more, or has disabled it."""
    if notification.hook is None:
        return notification.job
    definition = await read.job(tx, notification.hook)
    if definition is None or not definition.enabled:
        log.warning("notification %r is for job %r, which is not there or disabled", name, notification.hook)
        return None
    return definition


async def send_digests(tx: Tx, new_id: Callable[[], str]) -> int:
    """Forget budgets whose hour is over, and send what was held back under them as one message each.

    Return the number of messages. Hooks get none: they are told of events, not of messages.
    """
    held: dict[str, list[Held]] = {}
    over = await tx.fetch("lock_old_told", length=HOUR)
    for name, key, since, count in over:
        if count:
            held.setdefault(name, []).append(Held(Budget.read(key), since, count))
    if over:
        await tx.fetch("drop_told", [(name, key) for name, key, _, _ in over])
    if not held:
        return 0
    ((now,),) = await tx.fetch("now")
    digests = []
    for name, stored in sorted((await _all(tx)).items()):
        definition = stored.definition
        if name in held and stored.enabled and definition.hook is None:
            id = new_id()
            told: dict[str, Json] = {"event": digest_of(held[name], id, now), "notification": name}
            digests.append(new_run(definition.job, id, msgspec.json.encode(told).decode(), {"tags": [name]}))
    if digests:
        await enqueue.enqueue(tx, digests)
    return len(digests)


def _error_of(run: Run | None) -> RunError | None:
    return None if run is None else run.error


async def _windows(tx: Tx, keys: set[tuple[str, str]]) -> dict[str, dict[str, Window]]:
    """Lock and return windows by notification and budget.

    A window that has no row yet cannot be locked: at worst two messengers send one message more than allowed.
    """
    windows: dict[str, dict[str, Window]] = {}
    if keys:
        for name, key, since, told, held in await tx.fetch("told", sorted(keys)):
            windows.setdefault(name, {})[key] = Window(since, told, held)
    return windows


async def _runs(tx: Tx, signals: Sequence[Signal]) -> dict[str, Run]:
    runs = {}
    for id in {signal.subject for signal in signals if signal.kind == "run"}:
        try:
            runs[id] = await read.get_run(tx, id)
        except UnknownRun:  # pruned since: the signal is all that is left of it
            log.warning("run %s was pruned before its end was delivered", id)
    return runs


async def _all(tx: Tx) -> dict[str, Stored]:
    """Return all notifications that can be decoded. One that cannot does not block the others."""
    notifications = {}
    for name, text, owner, enabled, *_ in await tx.fetch("notifications"):
        try:
            definition = msgspec.json.decode(text, type=Notification)
        except msgspec.DecodeError as error:
            log.warning("notification %r cannot be decoded, and is not sent: %s", name, error)
        else:
            notifications[name] = Stored(definition, owner, bool(enabled))
    return notifications


async def _listen(tx: Tx, name: str, definition: Notification) -> None:
    """Register what a notification listens for from now on.

    Listeners that stay keep their rows, so that no signal between old and new is lost.
    """
    listeners = [(job, LISTENER, name) for job in definition.jobs]
    if not definition.jobs and not definition.schedules:
        listeners = [(_EVERYTHING, LISTENER, name)]
    await tx.fetch("drop_listeners_but", listeners, what=LISTENER, subject=name)
    if listeners:
        await tx.fetch("add_listeners", listeners)
    if definition.schedules:
        await tx.fetch("heed_schedules", [(name, schedule) for schedule in definition.schedules])


async def _save(tx: Tx, name: str, stored: Stored, actor: str | None, *, new: bool) -> None:
    definition, owner, enabled = stored
    text = msgspec.json.encode(definition, order="deterministic").decode()
    facts = {"name": name, "definition": text, "owner": owner, "enabled": int(enabled)}
    await _save_jobs(tx)
    for old_text, old_owner, active in await tx.fetch("lock_notification", name=name):
        if (old_text, active) == (text, int(enabled)):  # a repetition: it changes, and notes, nothing
            return
        if new:
            raise Conflict(f"notification {name!r} already exists", hint="change it, or choose another name")
        if owner == "code" != old_owner:
            log.error("notification %r belongs to %s; the one in code is not applied", name, old_owner)
            return
        await tx.fetch("change_notification", **facts)
        await _note(tx, name, "changed", definition, actor)
        return
    if not new and owner != "code":
        raise UnknownNotification(name, await _all(tx))
    if await tx.fetch("insert_notification", **facts):
        await _note(tx, name, "added", definition, actor)


async def _save_jobs(tx: Tx) -> None:
    """Save the jobs whose runs deliver notifications."""
    for job in JOBS:
        text = msgspec.json.encode(job, order="deterministic").decode()
        await tx.fetch("save_job", name=job.name, version=job.version, definition=text, kind=job.kind)


async def _note(tx: Tx, name: str, event: str, definition: Notification, actor: str | None) -> None:
    await _listen(tx, name, definition)
    await audit.note(tx, "notification", name, event, actor, {"target": without_path(shown_to(definition.to))})


async def _shown(tx: Tx, name: str) -> NotificationView:
    (row,) = await tx.fetch("get_notification", name=name)
    return _view(row)


class NotificationStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(
        self, name: str, definition: Notification, owner: str, actor: str | None, *, enabled: bool = True, new: bool
    ) -> None:
        """Create or change a notification.

        With `new`, an existing one of this name is a Conflict, unless it is the same. Code (owner "code") does not
        change what a person made.
        """
        stored = Stored(definition, owner, enabled)
        await self._database.transact(lambda tx: _save(tx, name, stored, actor, new=new))

    async def create(self, name: str, definition: Notification, owner: str, actor: str | None) -> NotificationView:
        """Create a notification, and return it."""

        async def body(tx: Tx) -> NotificationView:
            await _save(tx, name, Stored(definition, owner, enabled=True), actor, new=True)
            return await _shown(tx, name)

        return await self._database.transact(body)

    async def update(
        self, name: str, changes: Mapping[str, Any], enabled: bool | None, actor: str | None
    ) -> NotificationView:
        """Change the given options, and return the notification. From now on it belongs to "api"."""

        async def body(tx: Tx) -> NotificationView:
            await _save_jobs(tx)  # before the lock: the order is jobs, then notifications
            for text, _, active in await tx.fetch("lock_notification", name=name):
                old = msgspec.json.decode(text, type=Notification)
                definition = changed_notification(name, old, changes)
                stored = Stored(definition, "api", bool(active) if enabled is None else enabled)
                await _save(tx, name, stored, actor, new=False)
                return await _shown(tx, name)
            raise UnknownNotification(name, await _all(tx))

        return await self._database.transact(body)

    async def delete(self, name: str, actor: str | None) -> None:
        """Delete a notification."""

        async def body(tx: Tx) -> None:
            if not await tx.fetch("lock_notification", name=name):
                raise UnknownNotification(name, await _all(tx))
            await tx.fetch("drop_notification", name=name)
            await tx.fetch("drop_listeners", what=LISTENER, subject=name, but=_NOBODY)
            await tx.fetch("forget_told", name=name)
            await audit.note(tx, "notification", name, "dropped", actor, {})

        await self._database.transact(body)

    async def get(self, name: str) -> Stored:
        """Return a notification with its secret, which only the sender needs."""

        async def body(tx: Tx) -> Stored:
            notifications = await _all(tx)
            if name not in notifications:
                raise UnknownNotification(name, notifications)
            return notifications[name]

        return await self._database.read(body)

    async def list(self) -> list[NotificationView]:
        async def body(tx: Tx) -> Sequence[Row]:
            return await tx.fetch("notifications")

        views = []
        for row in await self._database.read(body):
            with suppress(msgspec.DecodeError):
                views.append(_view(row))
        return views

    async def any(self) -> bool:
        async def body(tx: Tx) -> bool:
            return bool(await tx.fetch("notifications"))

        return await self._database.glance(body)


def _view(row: Row) -> NotificationView:
    name, text, owner, enabled, created_at, updated_at = row
    definition = msgspec.json.decode(text, type=Notification)
    facts: Mapping[str, object] = {
        **{field: getattr(definition, field) for field in definition.__struct_fields__},
        "to": shown_to(definition.to),
        "secret": shown_secret(definition.secret),
    }
    return msgspec.convert(
        {**facts, "name": name, "owner": owner, "enabled": bool(enabled),
         "created_at": instant(created_at), "updated_at": instant(updated_at)},
        NotificationView,
    )  # fmt: skip
