"""Jobs that are data: made, changed and dropped; and what workers ask to hear of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta

import msgspec

from rota.core.model import JobDefinition
from rota.durations import in_micros
from rota.errors import Conflict, JobInUse, UnknownJob
from rota.store import events, expecting, limits, restricting
from rota.store.database import Database, Row, Tx
from rota.store.expecting import Subject

CODE = "code"
_REMEMBERED = in_micros(timedelta(days=7))


Seen = tuple[int, int, int]
"""Tells whether anything has changed: how many there are, how many of them were dropped, when one was last made."""


class DataJobChanges(msgspec.Struct, frozen=True):
    """`names`: of all there are; `definitions`: those that were not held, as text, for some may be of a newer rota."""

    seen: Seen
    names: set[str]
    definitions: list[str]


async def require_free(tx: Tx, names: Iterable[str]) -> None:
    """Code does not take the name of a job that somebody made."""
    rows = [(name,) for name in names]
    for (name,) in await tx.fetch("taken_jobs", rows) if rows else ():
        raise Conflict(
            f"job {name!r} is declared in code, and was made by a command, too", hint=f"`rota job rm {name}`, or rename"
        )


class DataJobStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def changes(self, seen: Seen, held: Collection[tuple[str, int]]) -> DataJobChanges | None:
        """None while nothing has changed since `seen`; `held` are versions that the asker has."""

        async def body(tx: Tx) -> DataJobChanges | None:
            ((count, dropped, last),) = await tx.fetch("data_jobs_seen")
            if (count, dropped, last) == seen:
                return None
            versions = [
                (name, version) for name, version in await tx.fetch("data_job_versions", dropped_since=_REMEMBERED)
            ]
            missing = [one for one in versions if one not in held]
            rows = await tx.fetch("data_job_definitions", missing) if missing else []
            return DataJobChanges((count, dropped, last), {name for name, _ in versions}, [row[0] for row in rows])

        return await self._database.read(body)

    async def add(self, definition: JobDefinition, owner: str, actor: str | None) -> JobDefinition:
        """Its version is the next one. Added again just the same, it is there already."""

        async def body(tx: Tx) -> JobDefinition:
            rows = await _locked(tx, definition.name)
            live = [row for row in rows if row[2] is None]
            if live and live[0][1] != CODE:
                found = _read(live[0][3])
                if msgspec.structs.replace(definition, version=found.version) == found:
                    return found
            if live:
                hint = "change it: `rota job edit`" if live[0][1] != CODE else "it is declared in code"
                raise Conflict(f"there is a job {definition.name!r} already", hint=hint)
            return await _insert(tx, definition, rows, owner, actor, "added", queues)

        queues: set[str] = set()
        made = await self._database.transact(body)
        self._database.notify(queues)
        return made

    async def get(self, name: str) -> JobDefinition:
        """With its secrets."""

        async def body(tx: Tx) -> JobDefinition:
            return _read((await _own(tx, name))[0][3])

        return await self._database.read(body)

    async def change(self, definition: JobDefinition, actor: str | None) -> JobDefinition | None:
        """A new version; None if the newest is not the one any more that `definition` was made from."""

        async def body(tx: Tx) -> JobDefinition | None:
            await tx.fetch("lock_job", job=definition.name)
            rows = await _own(tx, definition.name)
            newest = _read(rows[0][3])
            if newest.version != definition.version:
                return None
            if newest == definition:
                return newest
            return await _insert(tx, definition, rows, rows[0][1], actor, "changed", queues)

        queues: set[str] = set()
        made = await self._database.transact(body)
        self._database.notify(queues)
        return made

    async def drop(self, name: str, actor: str | None, *, force: bool) -> None:
        """Dropped twice, it was dropped the first time."""

        async def body(tx: Tx) -> None:
            rows = await _locked(tx, name)
            if rows and all(dropped is not None for _, _, dropped, _ in rows):
                return
            await _own(tx, name)
            ((schedules, runs),) = await tx.fetch("job_uses", job=name)
            if (schedules or runs) and not force:
                raise JobInUse(name, schedules, runs)
            await tx.fetch("drop_data_job", job=name)
            await expecting.drop(tx, Subject("job", name, name), actor=actor)
            await events.note(tx, "job", name, "dropped", actor, {})

        await self._database.transact(body)


async def _locked(tx: Tx, name: str) -> list[Row]:
    await tx.fetch("lock_job", job=name)
    return list(await tx.fetch("job_versions", job=name))


async def _own(tx: Tx, name: str) -> list[Row]:
    """Its versions, the newest first."""
    rows = list(await tx.fetch("job_versions", job=name))
    live = [row for row in rows if row[2] is None]
    if not live:
        raise UnknownJob(name)
    if live[0][1] == CODE:
        raise Conflict(f"job {name!r} is declared in code", hint="change it there")
    return rows


async def _insert(
    tx: Tx, definition: JobDefinition, rows: list[Row], owner: str, actor: str | None, what: str, queues: set[str]
) -> JobDefinition:
    """`queues` gets those where runs may begin because of it."""
    version = max((row[0] for row in rows), default=0) + 1
    made = msgspec.structs.replace(definition, version=version)
    text = msgspec.json.encode(made, order="deterministic").decode()
    facts = {"job": made.name, "version": version, "kind": made.kind, "owner": owner}
    if not await tx.fetch("add_data_job", **facts, definition=text):  # a first one has no row that could be locked
        raise Conflict(f"somebody else made a job {made.name!r} just now", hint="look at it: `rota job show`")
    await limits.declare(tx, made)
    queues |= await restricting.declare(tx, made)
    await expecting.declare_job(tx, made)
    await events.note(tx, "job", made.name, what, actor, {"kind": made.kind, "version": version})
    return made


def _read(text: str) -> JobDefinition:
    return msgspec.json.decode(text, type=JobDefinition)
