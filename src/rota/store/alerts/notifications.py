"""Who is told of what: notifications made, changed and dropped, and the runs that tell of a signal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from rota.core.alerts.notifications import (
    JOBS,
    Notification,
    NotificationView,
    Window,
    admit,
    event_of,
    shown_secret,
    shown_to,
)  # fmt: skip
from rota.core.alerts.signals import Signal
from rota.core.runs.options import new_run
from rota.core.runs.run import Run
from rota.errors import Conflict, UnknownNotification, UnknownRun
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.store.runs import enqueue, read
from rota.values.instants import instant

log = logging.getLogger("rota.messenger")

LISTENER = "notification"
_EVERYTHING = "*"
_NOBODY = ""

Stored = tuple[Notification, str, bool]
"""What it says, whose it is, and whether it is in force."""


async def heed_schedule(tx: Tx, schedule: str, job: str | None = None) -> None:
    """It was made, or has another job: whoever is told of it listens to the ends of that."""
    known = {name: found[0] for name, found in (await _all(tx)).items()}
    names = [name for name, found in known.items() if schedule in found.schedules]
    if names and job is not None:
        await tx.fetch("add_listeners", [(job, LISTENER, name) for name in names])
    elif names:
        await tx.fetch("heed_schedules", [(name, schedule) for name in names])


async def tell(tx: Tx, heard: Sequence[tuple[Signal, Sequence[str]]], new_id: Callable[[], str]) -> int:
    """A run of our own for each notification that a signal concerns; with each signal, the names of those to ask."""
    if not any(names for _, names in heard):
        return 0
    known = {name: found[0] for name, found in (await _all(tx)).items() if found[2]}
    wanted = [(s, name) for s, names in heard for name in names if name in known and known[name].matches(s)]
    if not wanted:
        return 0
    ((now,),) = await tx.fetch("now")
    windows = await _windows(tx, {(name, signal.job or "") for signal, name in wanted})
    made, runs = [], await _runs(tx, [signal for signal, _ in wanted])
    for signal, name in wanted:
        place = name, signal.job or ""
        windows[place], may, held = admit(windows.get(place), now, known[name].at_most)
        if may:
            id = new_id()
            event = event_of(signal, runs.get(signal.subject), known[name], id, held)
            payload = msgspec.json.encode({"notification": name, "event": event}).decode()
            made.append(new_run(known[name].job, id, payload, {"tags": [name]}))
    await tx.fetch("tell", [(*place, one.since, one.told, one.held) for place, one in sorted(windows.items())])
    if made:
        await enqueue.enqueue(tx, made)
    return len(made)


async def _windows(tx: Tx, places: set[tuple[str, str]]) -> dict[tuple[str, str], Window]:
    """Locked, in one order. One that is new is nobody's yet: at worst two messengers send one more than they may."""
    rows = await tx.fetch("told", sorted(places))
    return {(name, job): Window(since, told, held) for name, job, since, told, held in rows}


async def _runs(tx: Tx, signals: Sequence[Signal]) -> dict[str, Run]:
    found = {}
    for id in {signal.subject for signal in signals if signal.kind == "run"}:
        try:
            found[id] = await read.get_run(tx, id)
        except UnknownRun:  # pruned since: what the signal says is all there is
            log.warning("run %s is gone before anybody was told of its end", id)
    return found


async def _all(tx: Tx) -> dict[str, Stored]:
    """Those that can be read: one that cannot is in nobody's way."""
    found = {}
    for name, text, owner, enabled, *_ in await tx.fetch("notifications"):
        try:
            found[name] = msgspec.json.decode(text, type=Notification), owner, bool(enabled)
        except msgspec.DecodeError as error:
            log.warning("notification %r cannot be read, and is not sent: %s", name, error)
    return found


async def _listen(tx: Tx, name: str, made: Notification) -> None:
    """From now on; what it listened for already goes on without a gap."""
    wanted = [(job, LISTENER, name) for job in made.jobs]
    if not made.jobs and not made.schedules:
        wanted = [(_EVERYTHING, LISTENER, name)]
    await tx.fetch("drop_listeners_but", wanted, what=LISTENER, subject=name)
    if wanted:
        await tx.fetch("add_listeners", wanted)
    if made.schedules:
        await tx.fetch("heed_schedules", [(name, schedule) for schedule in made.schedules])


class NotificationStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(
        self, name: str, made: Notification, owner: str, actor: str | None, *, enabled: bool = True, new: bool
    ) -> None:
        """`new`: one of this name is a Conflict, unless it is the same. Otherwise it is changed; code does not change
        what a person made."""
        text = msgspec.json.encode(made, order="deterministic").decode()

        async def body(tx: Tx) -> None:
            facts = {"name": name, "definition": text, "owner": owner, "enabled": int(enabled)}
            for job in JOBS:
                definition = msgspec.json.encode(job, order="deterministic").decode()
                await tx.fetch("save_job", name=job.name, version=job.version, definition=definition, kind=job.kind)
            for was, whose, active in await tx.fetch("lock_notification", name=name):
                if (was, active) == (text, int(enabled)):
                    return
                if new:
                    raise Conflict(f"there is a notification {name!r} already", hint="change it, or take another name")
                if owner == "code" != whose:
                    log.error("notification %r belongs to %s; the one in code is not applied", name, whose)
                    return
                await tx.fetch("change_notification", **facts)
                await self._noted(tx, name, "changed", made, actor)
                return
            if not new and owner != "code":
                raise UnknownNotification(name, await _all(tx))
            if await tx.fetch("insert_notification", **facts):
                await self._noted(tx, name, "added", made, actor)

        await self._database.transact(body)

    async def _noted(self, tx: Tx, name: str, what: str, made: Notification, actor: str | None) -> None:
        await _listen(tx, name, made)
        await audit.note(tx, "notification", name, what, actor, {"target": shown_to(made.to)})

    async def delete(self, name: str, actor: str | None) -> bool:
        """Whether it was there."""

        async def body(tx: Tx) -> bool:
            rows = await tx.fetch("lock_notification", name=name)
            if not rows:
                return False
            await tx.fetch("drop_notification", name=name)
            await tx.fetch("drop_listeners", what=LISTENER, subject=name, but=_NOBODY)
            await tx.fetch("forget_told", name=name)
            await audit.note(tx, "notification", name, "dropped", actor, {})
            return True

        return await self._database.transact(body)

    async def get(self, name: str) -> Stored:
        """With its secret: for whoever sends it."""

        async def body(tx: Tx) -> Stored:
            known = await _all(tx)
            if name not in known:
                raise UnknownNotification(name, known)
            return known[name]

        return await self._database.read(body)

    async def list(self) -> list[NotificationView]:
        async def body(tx: Tx) -> Sequence[Row]:
            return await tx.fetch("notifications")

        return [view for row in await self._database.read(body) if (view := _view(row)) is not None]

    async def any(self) -> bool:
        async def body(tx: Tx) -> bool:
            return bool(await tx.fetch("notifications"))

        return await self._database.glance(body)


def _view(row: Row) -> NotificationView | None:
    name, text, owner, enabled, created_at, updated_at = row
    try:
        made = msgspec.json.decode(text, type=Notification)
    except msgspec.DecodeError:
        return None
    facts: Mapping[str, object] = {
        **{field: getattr(made, field) for field in made.__struct_fields__},
        "to": shown_to(made.to),
        "secret": shown_secret(made.secret),
    }
    return msgspec.convert(
        {**facts, "name": name, "owner": owner, "enabled": bool(enabled),
         "created_at": instant(created_at), "updated_at": instant(updated_at)},
        NotificationView,
    )  # fmt: skip
