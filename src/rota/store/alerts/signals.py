"""Delivery of signals. A signal's consequences and its deletion are one transaction, so nothing is delivered twice."""

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
    """Number of signals taken, and number of notifications enqueued for them."""

    signals: int
    notified: int = 0


class Look(msgspec.Struct, frozen=True):
    """Result of a cheap check: whether signals wait, a notification exists, and the hour of a budget is over."""

    signals: bool
    notifications: bool
    digests: bool = False


class Undeliverable(Exception):
    """A single signal that cannot be processed. `__cause__` is the error."""

    def __init__(self, signal: Signal) -> None:
        super().__init__(f"signal {signal.no}: {signal.type} of {signal.kind} {signal.subject}")
        self.signal = signal


class SignalStore:
    def __init__(self, database: Database, new_id: Callable[[], str]) -> None:
        self._database = database
        self._new_id = new_id

    async def look(self) -> Look:
        """Check for signals. Cheap, because the messenger polls it all day."""

        async def body(tx: Tx) -> Look:
            ((signals, notifications, digests),) = await tx.fetch("anything_to_tell")
            return Look(bool(signals), bool(notifications), bool(digests))

        return await self._database.glance(body)

    async def deliver(self, limit: int, besides: Collection[int] = ()) -> Delivered:
        """Deliver a batch of signals, oldest first, except those in `besides`.

        With `limit` 1, a signal that cannot be processed raises `Undeliverable`.
        """
        taken: list[Signal] = []

        async def body(tx: Tx) -> Delivered:
            taken[:] = [_signal(row) for row in await tx.fetch("take_signals", [(no,) for no in besides], limit=limit)]
            return await _deliver(tx, taken, self._new_id)

        try:
            return await self._database.transact(body, acts=True)
        except Unavailable:
            raise
        except Exception as error:
            if limit > 1 or not taken:
                raise
            raise Undeliverable(taken[0]) from error

    async def send_digests(self) -> int:
        """Send what was held back within budgets whose hour is over; return the number of messages."""
        return await self._database.transact(lambda tx: notifications.send_digests(tx, self._new_id), acts=True)

    async def drop(self, signal: Signal, trouble: str) -> None:
        """Delete a signal that can never be processed, and note it, so that it no longer blocks the others."""

        async def body(tx: Tx) -> None:
            if await tx.fetch("drop_signals", [(signal.no,)]):
                details = {"signal": signal.type, "subject": signal.subject, "kind": signal.kind, "trouble": trouble}
                await audit.note(tx, "job", signal.job or signal.subject, _DROPPED, "messenger", details)

        await self._database.transact(body)

    async def add(self, signal: Signal) -> None:
        """Insert a signal that no run's end produces. The database assigns its number."""
        details = msgspec.json.encode(signal.details).decode() if signal.details else None
        facts = {name: getattr(signal, name) for name in ("type", "kind", "subject", "job", "schedule")}
        await self._database.transact(lambda tx: tx.fetch("signal", **facts, details=details))


async def _deliver(tx: Tx, taken: Sequence[Signal], new_id: Callable[[], str]) -> Delivered:
    if not taken:
        return Delivered(0)
    heard = await _heard(tx, taken)
    done = await job_triggers.follow(tx, [(signal, ids) for signal, ids, _ in heard], new_id)
    matches = [(signal, names) for signal, _, names in heard[:done]]
    notified = await notifications.tell(tx, matches, new_id)
    await tx.fetch("drop_signals", [(signal.no,) for signal in taken[:done]])
    return Delivered(done, notified)


async def _heard(tx: Tx, taken: Sequence[Signal]) -> list[tuple[Signal, list[str], list[str]]]:
    """Return each signal with the schedules and the notifications that listened when it happened."""
    jobs = sorted({signal.job for signal in taken if signal.job is not None})
    listeners = await tx.fetch("listeners_of", [(job,) for job in jobs])
    heard = []
    for signal in taken:
        by: dict[str, list[str]] = {job_triggers.LISTENER: [], notifications.LISTENER: []}
        for job, kind, subject, since in listeners:
            if job not in ("*", signal.job) or since > signal.at:
                continue
            if kind in by and subject not in by[kind]:
                by[kind].append(subject)
        heard.append((signal, by[job_triggers.LISTENER], by[notifications.LISTENER]))
    return heard


def _signal(row: Row) -> Signal:
    no, at, event, kind, subject, job, schedule, text = row
    try:
        details = msgspec.json.decode(text, type=dict[str, Any]) if text else {}
    except msgspec.DecodeError:  # the signal itself is worth more than its details
        details = {}
    return Signal(no, at, event, kind, subject, job, schedule, details)
