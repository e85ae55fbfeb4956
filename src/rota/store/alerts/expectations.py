"""Rows of expectations and breaches. Each breach is opened, closed and signalled exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from rota.core.alerts.expectations import DECLARED, EXPECTED, Breach, Expectations
from rota.core.calendar.notation import written_instant
from rota.core.jobs.job import JobDefinition
from rota.store.databases.database import Tx
from rota.store.ledger import audit
from rota.values.instants import instant

WATCHMAN = "watchman"
DROPPED, RESTS, MET = "no longer expected", "paused or disabled", None


class Subject(msgspec.Struct, frozen=True):
    """The job or schedule that an expectation is about. `job` is a schedule's job, too; `id` is the schedule's id."""

    kind: str
    name: str
    job: str
    id: str | None = None

    @property
    def told(self) -> dict[str, Any]:
        """Extra details for audit notes: the schedule's id, because names are reused."""
        return {} if self.id is None else {"schedule_id": self.id}


class StoredExpectation(NamedTuple):
    """The columns of `expectations` and `lock_expectation`, in their order. `text` is JSON; `rests` is 0 or 1."""

    kind: str
    name: str
    text: str
    owner: str
    since: int
    rests: int

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name

    @property
    def expect(self) -> Expectations:
        return decoded(self.text)


async def read_all(tx: Tx) -> list[StoredExpectation]:
    return [StoredExpectation(*row) for row in await tx.fetch("expectations")]


async def lock(tx: Tx, kind: str, name: str) -> StoredExpectation | None:
    """Lock and return an expectation, so that its breaches are opened and closed by one transaction at a time."""
    for row in await tx.fetch("lock_expectation", kind=kind, subject=name):
        return StoredExpectation(*row)
    return None


async def declare_job(tx: Tx, definition: JobDefinition) -> None:
    """Store the expectation that a job's newest version declares. One that a person has set stays."""
    subject = Subject("job", definition.name, definition.name)
    await declare(tx, subject, definition.expect)
    await tx.fetch("rest_expectation", kind="job", subject=subject.name, rests=int(not definition.enabled))


async def declare(tx: Tx, subject: Subject, expect: Expectations | None) -> None:
    if expect is None:
        await delete(tx, subject, owner=DECLARED)
    else:
        facts = {"kind": subject.kind, "subject": subject.name, "owner": DECLARED}
        await tx.fetch("declare_expectation", **facts, definition=encoded(expect))


async def delete(tx: Tx, subject: Subject, *, owner: str | None = None, actor: str | None = None) -> bool:
    """Delete the expectation, or only if it belongs to `owner`. Close its breaches. Return whether there was one."""
    if not await tx.fetch("drop_expectation", kind=subject.kind, subject=subject.name, owner=owner):
        return False
    await close(tx, subject, EXPECTED, DROPPED, actor or owner or WATCHMAN)
    return True


async def anew(tx: Tx, kind: str, name: str) -> None:
    """Restart the expectation's clock after a rest, so that the time of the rest does not count."""
    await tx.fetch("expect_anew", kind=kind, subject=name)


async def open_(tx: Tx, subject: Subject, breaches: Sequence[Breach]) -> tuple[list[Breach], bool]:
    """Insert breaches. Return those that this transaction opened, and whether anybody listens for them.

    Of two concurrent watchmen, the primary key lets only one open a breach.
    """
    rows = [(breach.what, breach.since, _text(breach)) for breach in breaches]
    inserted = await tx.fetch("open_breaches", rows, kind=subject.kind, subject=subject.name)
    begun = {what for (what,) in inserted}
    fresh = [breach for breach in breaches if breach.what in begun]
    signals: list[tuple[str, Subject, dict[str, Any]]] = []
    for breach in fresh:
        details = _details(breach.what, breach.since, breach.message, breach.details)
        await audit.note(tx, subject.kind, subject.name, "breached", WATCHMAN, {**subject.told, **details})
        signals.append(("breached", subject, details))
        run_id = breach.details.get("run_id")
        if breach.what == "start_within" and run_id is not None:
            signals.append(("late", msgspec.structs.replace(subject, kind="run", id=run_id), details))
    return fresh, await _signal(tx, subject, signals)


async def close(
    tx: Tx, subject: Subject, whats: Iterable[str], reason: str | None, actor: str = WATCHMAN
) -> tuple[list[str], bool]:
    """Delete breaches. Return those that this transaction closed, and whether anybody listens for them."""
    rows = [(what,) for what in whats]
    ended = await tx.fetch("close_breaches", rows, kind=subject.kind, subject=subject.name)
    signals: list[tuple[str, Subject, dict[str, Any]]] = []
    for what, since, text in ended:
        stored = msgspec.json.decode(text) if text else {}
        details = _details(what, since, stored.get("message", ""), stored.get("details", {}))
        details |= {} if reason is None else {"reason": reason}
        await audit.note(tx, subject.kind, subject.name, "met", actor, {**subject.told, **details})
        signals.append(("met", subject, details))
    return [what for what, _, _ in ended], await _signal(tx, subject, signals)


async def _signal(tx: Tx, subject: Subject, signals: Sequence[tuple[str, Subject, dict[str, Any]]]) -> bool:
    schedule = subject.name if subject.kind == "schedule" else None
    rows = [
        (
            event,
            of.kind,
            of.id if of.kind == "run" else of.name,
            of.job,
            schedule,
            msgspec.json.encode(details).decode(),
        )
        for event, of, details in signals
    ]
    return bool(await tx.fetch("signal_breaches", rows)) if rows else False


def _details(what: str, since: int, message: str, details: dict[str, Any]) -> dict[str, Any]:
    return {"what": what, "message": message, "since": written_instant(instant(since)), **details}


def _text(breach: Breach) -> str:
    return msgspec.json.encode({"message": breach.message, "details": breach.details}).decode()


def encoded(expect: Expectations) -> str:
    return msgspec.json.encode(expect, order="deterministic").decode()


def decoded(text: str) -> Expectations:
    return msgspec.json.decode(text, type=Expectations)
