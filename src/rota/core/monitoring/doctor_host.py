"""Checks of an installation's environment: disk space, versions, settings, workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.core.ledger.database_state import DatabaseStanding
from rota.core.monitoring.doctor import OK, PROBLEM, WARNING, Check, many
from rota.core.workers.worker import Worker, WorkerState
from rota.errors import DatabaseCopied
from rota.values.durations import format_duration, span

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
NO_ROOM, LITTLE_ROOM = 64 * MIB, 512 * MIB
LARGE_WAL = 128 * MIB
OLD_TRANSACTION = timedelta(minutes=10)
MANY_DEAD = 100_000
SAFE_SQLITE = (3, 51, 3)
"""In older versions, two connections that write and checkpoint the same WAL file may lose commits."""
OLDEST_POSTGRES = 12
_LAST_YEAR = 2012  # release 18 is maintained until November 2030, 19 until 2031
_NOVEMBER = 11
_SHOWN = 5


class FileFacts(msgspec.Struct, frozen=True):
    """Sizes of an SQLite file and its WAL in bytes; `room`: free disk space for this user."""

    size: int
    wal: int
    room: int


class FileUser(msgspec.Struct, frozen=True):
    """A process. `marked`: its connections that are rota's; `others`: what else it has open; `copies`: libraries."""

    pid: int
    program: str
    marked: int
    others: int
    copies: tuple[str, ...] = ()

    @property
    def is_mixed(self) -> bool:
        """Return whether two copies of SQLite may use the file in this process: neither minds the other's locks."""
        return self.marked > 0 and self.others > 0 and bool(self.copies)


class FileUsers(msgspec.Struct, frozen=True):
    """`hidden`: so many processes could not be looked at, because they belong to other users."""

    users: tuple[FileUser, ...]
    hidden: int = 0


class Transaction(msgspec.Struct, frozen=True):
    """Open transaction, which prevents vacuum of rows deleted since it began."""

    pid: int
    who: str
    state: str
    age: timedelta


class DeadRows(msgspec.Struct, frozen=True):
    table: str
    live: int
    dead: int


class Durability(msgspec.Struct, frozen=True):
    """Settings of a server that decide what a crash loses, and its standbys by kind of replication."""

    fsync: str = "on"
    full_page_writes: str = "on"
    synchronous_commit: str = "on"
    asynchronous: int = 0
    synchronous: int = 0


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a PostgreSQL server and our database. `unvacuumed`: tables with autovacuum off."""

    version: str
    major: int
    size: int
    autovacuum: bool
    unvacuumed: Sequence[str] = ()
    durability: Durability = Durability()
    oldest: Transaction | None = None
    dead: Sequence[DeadRows] = ()


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of this program and its parts; `planned_with`: the newest zone data that a schedule was planned with."""

    rota: str
    python: str
    sqlite: str
    zones: str
    planned_with: str | None = None


class HeartbeatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Heartbeat settings of the process that runs the check."""

    lease: timedelta
    heartbeat: timedelta
    deadline: timedelta


def check_versions(
    ours: Versions, workers: Sequence[Worker], server: ServerFacts | None, now: datetime
) -> Iterator[Check]:
    """Check versions, the database's first: it is the only one that can damage data."""
    yield _sqlite_version(ours) if server is None else _postgres_version(server, now)
    yield _program_versions(ours, workers)
    yield _zone_data(ours)


def _sqlite_version(ours: Versions) -> Check:
    if version_of(ours.sqlite) >= SAFE_SQLITE:
        return Check(name="sqlite", level=OK, words=f"SQLite {ours.sqlite}", facts={"version": ours.sqlite})
    words = f"SQLite {ours.sqlite} may lose committed work when two connections checkpoint at the same time"
    hint = "install a newer apsw: SQLite 3.51.3 fixes this"
    return Check(name="sqlite", level=PROBLEM, words=words, hint=hint, facts={"version": ours.sqlite})


def version_of(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _postgres_version(server: ServerFacts, now: datetime) -> Check:
    facts = {"version": server.version}
    if server.major < OLDEST_POSTGRES:
        words = f"PostgreSQL {server.version} is too old for rota's statements"
        return Check(name="postgres", level=PROBLEM, words=words, hint=f"use {OLDEST_POSTGRES} or newer", facts=facts)
    if (now.year, now.month) > (server.major + _LAST_YEAR, _NOVEMBER):
        words = f"PostgreSQL {server.version} is no longer maintained"
        return Check(name="postgres", level=WARNING, words=words, hint="plan an upgrade of the server", facts=facts)
    return Check(name="postgres", level=OK, words=f"PostgreSQL {server.version}", facts=facts)


def _program_versions(ours: Versions, workers: Sequence[Worker]) -> Check:
    others = Counter(
        worker.version for worker in workers if worker.state is not WorkerState.GONE and worker.version != ours.rota
    )
    facts: dict[str, Any] = {"rota": ours.rota, "python": ours.python, "others": dict(others)}
    if not others:
        return Check(name="versions", level=OK, words=f"rota {ours.rota}, Python {ours.python}", facts=facts)
    versions = ", ".join(f"{version} ({many(count, 'worker', 'workers')})" for version, count in sorted(others.items()))
    words = f"this is rota {ours.rota}, but live workers have {versions}"
    hint = "fine during a rollout; otherwise restart them"
    return Check(name="versions", level=WARNING, words=words, hint=hint, facts=facts)


def _zone_data(ours: Versions) -> Check:
    facts = {"here": ours.zones, "planned_with": ours.planned_with}
    if ours.planned_with is None or ours.planned_with <= ours.zones:
        return Check(name="zones", level=OK, words=f"zone data {ours.zones}", facts=facts)
    words = f"schedules were planned with zone data {ours.planned_with}, but this host has {ours.zones}"
    hint = "upgrade the package tzdata here: a host with older data plans only what no other host plans"
    return Check(name="zones", level=WARNING, words=words, hint=hint, facts=facts)


def check_file(file: FileFacts) -> Check:
    words = f"{size(file.size)} in the file, {size(file.wal)} in its WAL, {size(file.room)} of disk space free"
    facts = {"size": file.size, "wal": file.wal, "room": file.room}
    if file.room < LITTLE_ROOM:
        level = PROBLEM if file.room < NO_ROOM else WARNING
        hint = "free disk space: without it nothing can be enqueued, claimed or reported"
        return Check(name="disk", level=level, words=words, hint=hint, facts=facts)
    if file.wal > max(LARGE_WAL, file.size):
        hint = "a process has a long read transaction open, which prevents a checkpoint of the WAL: end it"
        return Check(name="disk", level=WARNING, words=words, hint=hint, facts=facts)
    return Check(name="disk", level=OK, words=words, facts=facts)


def check_users(found: FileUsers | None) -> Check:
    """Warn of another copy of SQLite that has the file open in a process of rota's."""
    if found is None:
        words = "this system does not tell whether another copy of SQLite has the file open"
        return Check(name="sharing", level=OK, words=words)
    facts = {"processes": [msgspec.to_builtins(user) for user in found.users], "hidden": found.hidden}
    mixed = [user for user in found.users if user.is_mixed]
    if mixed:
        named = "; ".join(f"{user.program} (pid {user.pid}) by {', '.join(user.copies)}" for user in mixed)
        words = f"another copy of SQLite seems to have the file open in a process of rota's: {named}"
        hint = "never write to the file by it, and better give it a file of its own: docs/embedding.md"
        return Check(name="sharing", level=WARNING, words=words, hint=hint, facts=facts)
    foreign = [f"{user.program} (pid {user.pid})" for user in found.users if not user.marked]
    ours = len(found.users) - len(foreign)
    words = many(ours, "process of rota has the file open", "processes of rota have the file open")
    if foreign:
        words += f"; also open in {', '.join(foreign)}"
    if found.hidden:
        words += f"; {found.hidden} more cannot be looked at: they belong to other users"
    return Check(name="sharing", level=OK, words=words, facts=facts)


def check_server(server: ServerFacts) -> Iterator[Check]:
    words = f"{size(server.size)} in the database; only its server knows the free disk space"
    yield Check(name="disk", level=OK, words=words, facts={"size": server.size})
    yield _durability(server.durability)
    yield _vacuum(server)


def _durability(server: Durability) -> Check:
    unsafe = [name for name in ("fsync", "full_page_writes") if getattr(server, name) == "off"]
    if unsafe:
        words = f"{' and '.join(unsafe)} of the server {'is' if len(unsafe) == 1 else 'are'} off: a crash may damage it"
        return Check(name="durability", level=WARNING, words=words, hint="switch it on, unless this is a test")
    if server.synchronous_commit in ("off", "local") and (server.synchronous_commit == "off" or server.synchronous):
        words = f"synchronous_commit is {server.synchronous_commit}: the last acknowledged changes may be lost"
        return Check(name="durability", level=WARNING, words=words, hint="set it to on for rota's user or database")
    if server.asynchronous and not server.synchronous:
        words = f"{many(server.asynchronous, 'standby', 'standbys')}, none synchronous: a failover may lose changes"
        hint = "set synchronous_standby_names; docs/howto/failover.md says what is promised"
        return Check(name="durability", level=WARNING, words=words, hint=hint)
    return Check(name="durability", level=OK, words="what is acknowledged survives a crash of the server")


def check_epoch(last: DatabaseStanding, now: datetime) -> Check:
    """Warn for a week after the database came to another place: changes may be lost, and nobody else would say so."""
    if last.since is None:
        words = "the place of the database is not recorded: a failover or a restore would not be noticed"
        return Check(name="epoch", level=WARNING, words=words, hint="may rota's user call pg_control_system()?")
    if last.held:
        copied = DatabaseCopied()
        facts = {"epoch": last.epoch}
        return Check(name="epoch", level=PROBLEM, words=copied.message, hint=copied.hint, facts=facts)
    if not last.epoch:
        return Check(name="epoch", level=OK, words="no failover and no restore so far")
    facts = {"epoch": last.epoch, "lost_runs": last.lost_runs}
    if not last.is_news(now):
        return Check(name="epoch", level=OK, words=last.words(now), facts=facts)
    return Check(name="epoch", level=WARNING, words=last.words(now), hint=last.hint, facts=facts)


def _vacuum(server: ServerFacts) -> Check:
    facts = {"dead": {rows.table: rows.dead for rows in server.dead}}
    if not server.autovacuum or server.unvacuumed:
        where = "the server" if not server.autovacuum else ", ".join(server.unvacuumed[:_SHOWN])
        hint = "switch it on: without it tables only grow, and every claim gets slower"
        return Check(name="vacuum", level=PROBLEM, words=f"autovacuum is off for {where}", hint=hint, facts=facts)
    oldest = server.oldest
    if oldest is not None and oldest.age > OLD_TRANSACTION:
        who = f"{oldest.who} ({oldest.state})" if oldest.who else oldest.state
        words = f"a transaction of {who} is open for {span(oldest.age)}: rows deleted since cannot be vacuumed"
        hint = f"end it: select pg_terminate_backend({oldest.pid})"
        return Check(name="vacuum", level=WARNING, words=words, hint=hint, facts={**facts, "pid": oldest.pid})
    bloated = [rows for rows in server.dead if rows.dead > max(MANY_DEAD, 2 * rows.live)]
    if bloated:
        words = "; ".join(
            f"{rows.table} has {rows.dead} dead rows and {rows.live} live ones" for rows in bloated[:_SHOWN]
        )
        hint = f"autovacuum does not keep up: vacuum {bloated[0].table}; then look at its settings"
        return Check(name="vacuum", level=WARNING, words=words, hint=hint, facts=facts)
    return Check(name="vacuum", level=OK, words="autovacuum is on, and nothing blocks it", facts=facts)


def check_workers(workers: Sequence[Worker], now: datetime) -> Check:
    gone = [worker for worker in workers if worker.state is WorkerState.GONE]
    facts = {"alive": len(workers) - len(gone), "gone": [worker.id for worker in gone]}
    if not gone:
        alive = f"{many(len(workers), 'worker is', 'workers are')} alive"
        words = alive if workers else "no worker is alive"  # a problem only if there is work
        return Check(name="workers", level=OK, words=words, facts=facts)
    names = ", ".join(f"{worker.id} for {span(now - worker.seen_at)}" for worker in gone[:_SHOWN])
    words = f"{many(len(gone), 'worker is', 'workers are')} silent without having shut down: {names}"
    hint = "they were killed, or cannot reach the database; others take over their runs; they are deleted after a day"
    return Check(name="workers", level=WARNING, words=words, hint=hint, facts=facts)


def check_settings(pulse: HeartbeatSettings, workers: Sequence[Worker]) -> Check:
    """Compare heartbeats with the lease.

    Our own settings are checked when they are read (a lease is at least three heartbeats), those of other processes may
    differ.
    """
    settings = f"lease {format_duration(pulse.lease)}, heartbeat {format_duration(pulse.heartbeat)}"
    slow = [worker for worker in workers if worker.heartbeat is not None and 3 * worker.heartbeat > pulse.lease]
    if slow:
        named = ", ".join(
            f"{worker.id} ({format_duration(worker.heartbeat)})" for worker in slow[:_SHOWN] if worker.heartbeat
        )
        words = f"the lease is {format_duration(pulse.lease)} here, too short for the heartbeats of {named}"
        hint = "give all processes the same ROTA_LEASE: otherwise live workers count as gone"
        return Check(
            name="settings", level=WARNING, words=words, hint=hint, facts={"workers": [worker.id for worker in slow]}
        )
    if pulse.deadline >= pulse.lease:
        words = f"{settings}, and a call to the database may take {format_duration(pulse.deadline)}"
        hint = "a heartbeat that waits that long comes too late: set ROTA_DEADLINE below ROTA_LEASE"
        return Check(name="settings", level=WARNING, words=words, hint=hint)
    return Check(name="settings", level=OK, words=settings)


def size(count: int) -> str:
    """Format a number of bytes in one unit, for people."""
    for unit, name in ((GIB, "GB"), (MIB, "MB"), (KIB, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}" if count < 1000 * unit else f"{count // unit} {name}"
    return f"{count} bytes"
