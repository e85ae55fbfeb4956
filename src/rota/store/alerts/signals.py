"""Signals taken up: what follows from them and their deletion are one transaction, so nothing is told twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from rota.core.alerts.signals import Signal
from rota.errors import Unavailable
from rota.store.alerts import notifications
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.store.schedules import job_triggers

_DROPPED = "signal_dropped"


class Delivered(msgspec.Struct, frozen=True):
    """How many signals were taken, and how many notifications came of them."""

    signals: int
    notified: int = 0


class Look(msgspec.Struct, frozen=True):
    """Whether there are signals, and whether there are notifications at all."""

    signals: bool
    notifications: bool


class Undeliverable(Exception):
    """A single signal that cannot be processed; the cause is what went wrong."""

    def __init__(self, signal: Signal) -> None:
        super().__init__(f"signal {signal.no}: {signal.type} of {signal.kind} {signal.subject}")
        self.signal = signal


class SignalStore:
    def __init__(self, database: Database, new_id: Callable[[], str]) -> None:
        self._database = database
        self._new_id = new_id

    async def look(self) -> Look:
        """Cheap: it is asked all day."""

        async def body(tx: Tx) -> Look:
            ((signals, known),) = await tx.fetch("anything_to_tell")
            return Look(bool(signals), bool(known))

        return await self._database.glance(body)

    async def deliver(self, limit: int, besides: Collection[int] = ()) -> Delivered:
        """A bite of signals, oldest first, without those set aside. Taken singly, one that cannot be processed is an
        `Undeliverable`."""
        taken: list[Signal] = []

        async def body(tx: Tx) -> Delivered:
            taken[:] = [_signal(row) for row in await tx.fetch("take_signals", [(no,) for no in besides], limit=limit)]
            return await _deliver(tx, taken, self._new_id)

        try:
            return await self._database.transact(body)
        except Unavailable:
            raise
        except Exception as error:
            if limit > 1 or not taken:
                raise
            raise Undeliverable(taken[0]) from error

    async def drop(self, signal: Signal, trouble: str) -> None:
        """Nothing can be done about it: that is noted, and it is in nobody's way any more."""

        async def body(tx: Tx) -> None:
            if await tx.fetch("drop_signals", [(signal.no,)]):
                told = {"signal": signal.type, "subject": signal.subject, "kind": signal.kind, "trouble": trouble}
                await audit.note(tx, "job", signal.job or signal.subject, _DROPPED, "messenger", told)

        await self._database.transact(body)

    async def add(self, signal: Signal) -> None:
        """One that no end of a run leaves by itself; its number is given to it."""
        details = msgspec.json.encode(signal.details).decode() if signal.details else None
        facts = {name: getattr(signal, name) for name in ("type", "kind", "subject", "job", "schedule")}
        await self._database.transact(lambda tx: tx.fetch("signal", **facts, details=details))


async def _deliver(tx: Tx, taken: Sequence[Signal], new_id: Callable[[], str]) -> Delivered:
    if not taken:
        return Delivered(0)
    heard = await _heard(tx, taken)
    done = await job_triggers.follow(tx, [(signal, ids) for signal, ids, _ in heard], new_id)
    told = [(signal, names) for signal, _, names in heard[:done]]
    notified = await notifications.tell(tx, told, new_id)
    await tx.fetch("drop_signals", [(signal.no,) for signal in taken[:done]])
    return Delivered(done, notified)


async def _heard(tx: Tx, taken: Sequence[Signal]) -> list[tuple[Signal, list[str], list[str]]]:
    """Each signal with the schedules and the notifications that listened when it happened."""
    jobs = sorted({signal.job for signal in taken if signal.job is not None})
    listeners = await tx.fetch("listeners_of", [(job,) for job in jobs])
    found = []
    for signal in taken:
        mine = [row for row in listeners if _listens(row, signal)]
        by: dict[str, list[str]] = {job_triggers.LISTENER: [], notifications.LISTENER: []}
        for _, what, subject, _ in mine:
            if what in by and subject not in by[what]:
                by[what].append(subject)
        found.append((signal, by[job_triggers.LISTENER], by[notifications.LISTENER]))
    return found


def _listens(row: Row, signal: Signal) -> bool:
    job, _, _, since = row
    return job in ("*", signal.job) and since <= signal.at


def _signal(row: Row) -> Signal:
    no, at, what, kind, subject, job, schedule, details = row
    try:
        told = msgspec.json.decode(details, type=dict[str, Any]) if details else {}
    except msgspec.DecodeError:
        told = {}
    return Signal(no, at, what, kind, subject, job, schedule, told)
