"""Store operations on expectations. Each is one transaction and may be repeated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from rota.core.alerts.expectations import Breach, Breached, Expected, breaches, changed, written
from rota.errors import UnknownJob, UnknownSchedule
from rota.store.alerts import expectation_facts, expectations
from rota.store.alerts.emit_signal import MESSENGER
from rota.store.alerts.expectation_facts import ExpectationRow
from rota.store.alerts.expectations import StoredExpectation, Subject
from rota.store.databases.database import Database, Row, Tx
from rota.store.ledger import audit
from rota.store.ledger.occurrences import snapshot
from rota.store.runs import read
from rota.values.instants import instant


class Change(msgspec.Struct, frozen=True):
    """Result of checking one subject: breaches begun, expectations met again, and whether the messenger has work."""

    subject: Subject
    breached: Sequence[Breach] = ()
    met: Sequence[str] = ()
    told: bool = False


class ExpectationStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def update(
        self, kind: str, name: str, changes: Mapping[str, Any], owner: str, declared: Collection[str] = ()
    ) -> Expected:
        """Change the given fields of an expectation, and return it. From now on all of it belongs to `owner`.

        `declared` are jobs that count as known although no worker may have stored them yet.
        """

        async def body(tx: Tx) -> Expected:
            # Before anybody looks whether it is there: what is deleted meanwhile would leave an expectation behind, and
            # the next one of its name be born with it.
            await tx.fetch(
                "lock_job" if kind == "job" else "lock_schedule", **{"job" if kind == "job" else "name": name}
            )
            definition = await read.job(tx, name) if kind == "job" else None
            subject = await _subject(tx, kind, name, known=definition is not None or name in declared)
            stored = await expectations.lock(tx, kind, name)
            expect = changed(stored.expect if stored else None, changes)
            text = expectations.encoded(expect)
            # Otherwise an earlier try, whose answer got lost, has committed.
            if stored is None or (stored.text, stored.owner) != (text, owner):
                rests = int(definition is not None and not definition.enabled)
                facts = {"kind": kind, "subject": name, "definition": text, "owner": owner}
                await tx.fetch("save_expectation", **facts, rests=rests)
                await audit.note(tx, kind, name, "expected", owner, {**subject.told, "expect": written(expect)})
            (expected,) = await _read(tx, kind, name)
            return expected

        return await self._database.transact(body)

    async def delete(self, kind: str, name: str, actor: str | None, declared: Collection[str] = ()) -> bool:
        """Delete an expectation and end its breaches. Return whether there was one."""

        async def body(tx: Tx) -> bool:
            known = kind != "job" or name in declared or await read.job(tx, name) is not None
            subject = await _subject(tx, kind, name, known=known)
            dropped = await expectations.delete(tx, subject, actor=actor)
            if dropped:
                await audit.note(tx, kind, name, "expected", actor, {**subject.told, "expect": {}})
            return dropped

        dropped = await self._database.transact(body)
        self._database.notify([MESSENGER])
        return dropped

    async def list(self, kind: str | None = None, name: str | None = None) -> list[Expected]:
        async def body(tx: Tx) -> list[Expected]:
            await snapshot(tx)
            return await _read(tx, kind, name)

        return await self._database.read(body)

    async def watch(self) -> Sequence[Change]:
        """Check all expectations and write what changed.

        One read finds the candidates; each is checked again, and written, in its own transaction.
        """
        return [change for subject in await self._astray() if (change := await self._settle(*subject)) is not None]

    async def _astray(self) -> Sequence[tuple[str, str]]:
        """Return the subjects, as (kind, name), whose recorded breaches differ from the actual ones."""
        if not await self._database.glance(lambda tx: tx.fetch("expectations")):
            return []

        async def look(tx: Tx) -> Sequence[tuple[str, str]]:
            await snapshot(tx)
            ((now,),) = await tx.fetch("now")
            recorded: dict[tuple[str, str], set[str]] = {}
            for kind, name, what, _, _ in await tx.fetch("all_breaches"):
                recorded.setdefault((kind, name), set()).add(what)
            watched = await expectation_facts.observe(tx, await expectations.read_all(tx), int(now))
            keys = {(row.subject.kind, row.subject.name): row for row in watched}
            return [
                key
                for key, row in keys.items()
                if row.gone or _actual(row, int(now), known := recorded.get(key, set())).keys() != known
            ]

        return await self._database.read(look)

    async def _settle(self, kind: str, name: str) -> Change | None:
        change = await self._database.transact(partial(_settled, kind=kind, name=name), acts=True)
        if change is not None and change.told:
            self._database.notify([MESSENGER])
        return change


async def _settled(tx: Tx, kind: str, name: str) -> Change | None:
    """Read, decide and apply for one subject, as of one instant.

    On PostgreSQL this needs a snapshot: a run that moves from one table to another between two statements would be seen
    in both or in neither.
    """
    await snapshot(tx)
    stored = await expectations.lock(tx, kind, name)
    if stored is None:
        return None
    ((now,),) = await tx.fetch("now")
    (watched,) = await expectation_facts.observe(tx, [stored], int(now))
    subject = watched.subject
    if watched.gone:
        await expectations.delete(tx, subject)
        return None
    recorded = {what for (what,) in await tx.fetch("breaches_of", kind=kind, subject=name)}
    actual = _actual(watched, int(now), recorded)
    begun, over = [actual[what] for what in actual if what not in recorded], sorted(recorded - actual.keys())
    if not begun and not over:
        return None
    reason = expectations.RESTS if watched.facts is None else expectations.MET
    met, told_of_ends = await expectations.close(tx, subject, over, reason) if over else ([], False)
    opened, told_of_breaches = await expectations.open_(tx, subject, begun) if begun else ([], False)
    return Change(subject, opened, met, told_of_breaches or told_of_ends)


def _actual(watched: ExpectationRow, now: int, recorded: Collection[str]) -> dict[str, Breach]:
    if watched.facts is None:
        return {}
    return {breach.what: breach for breach in breaches(watched.expect, watched.facts, now, recorded)}


async def _read(tx: Tx, kind: str | None, name: str | None) -> list[Expected]:
    rows = await expectations.read_all(tx)
    rows = [row for row in rows if kind in (None, row.kind) and name in (None, row.name)]
    awake = await expectation_facts.awake(tx, rows)
    breaches = await tx.fetch("all_breaches") if rows else ()
    return [_expected(row, breaches, resting=row.key not in awake) for row in rows]


async def _subject(tx: Tx, kind: str, name: str, *, known: bool) -> Subject:
    """Return the job, if it is known, or the schedule."""
    if kind == "job":
        if not known:
            raise UnknownJob(name, [job.name for job in await read.jobs(tx)])
        return Subject(kind, name, name)
    for id, _, job, *_ in await tx.fetch("get_schedule", name=name):
        return Subject(kind, name, job, str(id))
    raise UnknownSchedule(name, [other for (other,) in await tx.fetch("schedule_names")])


def _expected(row: StoredExpectation, breaches: Sequence[Row], *, resting: bool) -> Expected:
    return Expected(
        kind=row.kind,
        subject=row.name,
        expect=written(row.expect),
        owner=row.owner,
        since=instant(row.since),
        resting=resting,
        breaches=tuple(_breach(*breach) for kind, name, *breach in breaches if (kind, name) == row.key),
    )


def _breach(what: str, since: int, text: str | None) -> Breached:
    stored = msgspec.json.decode(text) if text else {}
    return Breached(what, instant(since), stored.get("message", ""), stored.get("details", {}))
