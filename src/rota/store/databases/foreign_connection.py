"""Enqueue on a connection that is not ours, inside its owner's transaction."""

from __future__ import annotations

import inspect
import re
import sqlite3
from typing import Any

from rota.core.limits.lines import in_line
from rota.core.runs.run import NewRun
from rota.errors import Invalid, Unavailable
from rota.store.databases.statements import POSTGRES, SQLITE, Dialect, blocks, translate
from rota.store.runs.enqueue import ready_row
from rota.values.clock import HostClock

_SAFE_SQLITE = (3, 51, 3)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_NOW = re.compile(r"(?<![:\w]):now\b")

_TELL = "select pg_notify('rota', cast(:queue as text))"

_KINDS = {
    **dict.fromkeys(("asyncpg", "psycopg", "psycopg2", "postgresql"), POSTGRES),
    **dict.fromkeys(("apsw", "sqlite3", "aiosqlite", "sqlite"), SQLITE),
}
_ASYNCHRONOUS = ("asyncpg", "aiosqlite")
_NAMES = {POSTGRES: "PostgreSQL", SQLITE: "SQLite"}

Values = tuple[object, ...]


def statements(run: NewRun, dialect: Dialect, style: str) -> list[tuple[str, Any]]:
    """(sql, values) to execute in order; `style` is `numeric` ($1), `format` (%s), `qmark` (?) or `named` (:name)."""
    inserts = [_postgres(run, style)] if dialect is POSTGRES else _sqlite(run)
    limited = _under_limits(run, dialect, style) if run.gates else []
    return [*inserts, *limited, *([_hint(run, style)] if dialect is POSTGRES else [])]


def _hint(run: NewRun, style: str) -> tuple[str, Any]:
    """Tell those who rest, as soon as the owner commits. A limited run is for the promoter first: all are told."""
    return _bound(_TELL, {"queue": "" if run.gates else run.queue}, style)


def _postgres(run: NewRun, style: str) -> tuple[str, Any]:
    text = _NOW.sub(POSTGRES.now or "", _block(POSTGRES, "enqueue_one"))
    return _bound(
        text,
        {"asked": True} | {name: getattr(run, name) for name in _PARAMETER.findall(text) if name != "asked"},
        style,
    )


def _under_limits(run: NewRun, dialect: Dialect, style: str) -> list[tuple[str, Any]]:
    gate, back = _block(dialect, "insert_gate"), _block(dialect, "hold_back")
    values = [
        {"run_id": run.id, "key": gate.key, "place": place, "max": gate.max, "period": gate.period}
        for place, gate in enumerate(in_line(run.gates))
    ]
    return [*(_bound(gate, row, style) for row in values), _bound(back, {"run_id": run.id}, style)]


def _block(dialect: Dialect, name: str) -> str:
    lines = blocks(dialect.name)[name].strip().rstrip(";").splitlines()
    return translate("\n".join(line for line in lines if not line.startswith("--")), dialect)


def _bound(text: str, values: dict[str, Any], style: str) -> tuple[str, Any]:
    names = _PARAMETER.findall(text)
    if style == "named":
        return text, values
    if style == "numeric":
        order = list(dict.fromkeys(names))
        sql = _PARAMETER.sub(lambda match: f"${order.index(match.group(1)) + 1}", text)
        return sql, tuple(values[name] for name in order)
    return _PARAMETER.sub("%s" if style == "format" else "?", text), tuple(values[name] for name in names)


def _sqlite(run: NewRun) -> list[tuple[str, Any]]:
    # SQLite has no clock for all its users: the host's, as in rota's own writer.
    now = HostClock().micros()
    due = run.run_at if run.run_at is not None else now + run.delay
    insert = blocks("sqlite")["insert_run"].strip().rstrip(";")
    row: Values = (run.id, run.job, run.job_version, run.queue, run.priority, run.scope_kind, run.scope_id, run.key)
    row += (run.payload, run.tags, run.metadata, run.overrides, run.max_attempts, run.on_lost)
    row += (run.retry_of, run.origin_id, now, due)
    return [(insert, row), (blocks("sqlite")["insert_ready"].strip().rstrip(";"), ready_row(run, due, now))]


def needs_locks(run: NewRun) -> bool:
    """Return whether rota's own enqueue must decide about a run, under its locks."""
    return bool(run.holds or run.after or run.eligibility or run.pipeline or any(gate.decides for gate in run.gates))


def require_connection(connection: Any, dialect: Dialect, *, asynchronous: bool) -> None:
    """Refuse what is no connection, one to PostgreSQL where rota is on SQLite, and one of the other kind of code: a
    coroutine that nobody awaits would write nothing, and say so only in a warning.
    """
    name = type(connection).__module__.partition(".")[0]
    if not (hasattr(connection, "execute") or hasattr(connection, "cursor")):
        raise Invalid(
            f"{connection!r:.80} is no connection",
            hint="give yours, in its transaction: of psycopg, asyncpg, SQLAlchemy, Django or apsw",
        )
    # Connections of asyncpg's pools are proxies, whose methods do not show that they are coroutines.
    awaits = name in _ASYNCHRONOUS or inspect.iscoroutinefunction(getattr(type(connection), "execute", None))
    if awaits is not asynchronous:
        raise Invalid(
            f"{name}'s {type(connection).__qualname__} is {'asynchronous' if awaits else 'synchronous'}",
            hint="use `await job.aenqueue_in(connection, …)`" if awaits else "use `job.enqueue_in(connection, …)`",
        )
    if name == "sqlalchemy":
        bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
        name = bind.dialect.name
    kind = _KINDS.get(name)
    if kind is not None and kind is not dialect:
        raise Invalid(
            f"the connection is to {_NAMES[kind]}, and rota's database is {_NAMES[dialect]}",
            hint="the run and your rows must be in one database; tests choose theirs with `pytest --rota-database URL`",
        )


def execute_in(connection: Any, run: NewRun, dialect: Dialect) -> None:
    driver = type(connection).__module__.partition(".")[0]
    if isinstance(connection, sqlite3.Connection):
        cursor = connection.cursor()
        cursor.row_factory = None  # whatever rows the connection makes for its owner
        _refuse_unsafe_sqlite(cursor.execute("pragma database_list").fetchall())
    if driver == "sqlalchemy":
        from sqlalchemy import text

        if dialect is SQLITE:  # all of its drivers are Python's own
            _refuse_unsafe_sqlite(connection.execute(text("pragma database_list")).fetchall())
        for sql, values in statements(run, dialect, "named"):
            connection.execute(text(sql), values)
        return
    if hasattr(connection, "in_atomic_block"):
        _execute_in_django(connection, run, dialect)
        return
    target = connection if hasattr(connection, "execute") else connection.cursor()
    for sql, values in statements(run, dialect, "format" if dialect is POSTGRES else "qmark"):
        target.execute(sql, values)


def _execute_in_django(connection: Any, run: NewRun, dialect: Dialect) -> None:
    """`django.db.connection`, or one of `django.db.connections`."""
    if connection.vendor != "postgresql" or dialect is not POSTGRES:
        raise Invalid(
            "a run can be enqueued inside a transaction of Django's only if both are in the same PostgreSQL",
            hint="enqueue it when that is committed: `from rota.django import on_commit`",
        )
    if not connection.in_atomic_block:
        raise Invalid("there is no transaction to enqueue in", hint="begin one: `with transaction.atomic():`")
    with connection.cursor() as cursor:
        for sql, values in statements(run, dialect, "format"):
            cursor.execute(sql, values)


async def aexecute_in(connection: Any, run: NewRun, dialect: Dialect) -> None:
    driver = type(connection).__module__.partition(".")[0]
    if driver == "sqlalchemy":
        from sqlalchemy import text

        if dialect is SQLITE:
            _refuse_unsafe_sqlite((await connection.execute(text("pragma database_list"))).fetchall())
        for sql, values in statements(run, dialect, "named"):
            await connection.execute(text(sql), values)
    elif driver == "asyncpg":
        for sql, values in statements(run, dialect, "numeric"):
            await connection.execute(sql, *values)
    else:
        if dialect is SQLITE:
            _refuse_unsafe_sqlite(await (await connection.execute("pragma database_list")).fetchall())
        for sql, values in statements(run, dialect, "format" if dialect is POSTGRES else "qmark"):
            await connection.execute(sql, values)


def _refuse_unsafe_sqlite(files: list[Any]) -> None:
    """`files`: what `pragma database_list` says on that connection."""
    if sqlite3.sqlite_version_info < _SAFE_SQLITE:
        raise Unavailable(
            f"Python's sqlite3 is linked with SQLite {sqlite3.sqlite_version}, which can corrupt a WAL file that "
            "another connection checkpoints",
            hint="use apsw for this transaction, or SQLite 3.51.3 or newer",
        )
    from rota.store.databases.sqlite.sqlite import is_open_here  # late: whoever imports rota need not have the driver

    # Locks are the process's: a copy of SQLite that closes the file drops those of another copy, unseen by it.
    for _, _, path in files:
        if path and is_open_here(path):
            raise Unavailable(
                f"rota has {path} open in this process, and Python's sqlite3 is another copy of SQLite: closing one "
                "would drop the locks of the other",
                hint="use apsw for this transaction: it is the copy that rota uses",
            )
