"""SQL from the `.sql` files, by name, compiled for one database.

The files are shared; what differs between the databases is a handful of tokens:

    :name                    a bound value; `:now` is the database's own clock where it has one
    {rows id id, no int}     a set of bound rows, named `rows`, with these columns
    {for_update t}           row locks, where the database has them
    {keyed} {hot_ready} ...  how a table is stored
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import resources

import msgspec

RUN_COLUMNS = (
    "id, job, job_version, queue, priority, scope_kind, scope_id, key, state, reason, fence, attempt, max_attempts, "
    "payload, result, error, created_at, run_at, started_at, finished_at, retry_of, worker_id, tags, metadata, "
    "schedule, plan_time, covers_from, missed_count"
)

SCHEDULE_COLUMNS = (
    "id, name, job, definition, owner, revision, enabled, paused_at, paused_by, pause_reason, resume_at, job_paused, "
    "cursor_at, next_plan, awaits, fired, tzdata, trouble, created_at, updated_at"
)

SCHEDULE_ROW = (
    "id, name, definition, revision, enabled, paused_at, resume_at, job_paused, cursor_at, next_plan, awaits, fired, "
    "tzdata, provider, owner, declared"
)

_SHARED = (
    "runs.sql", "reading.sql", "pruning.sql", "holding.sql", "schedules.sql", "planning.sql", "ledger.sql", "jobs.sql",
    "backfilling.sql", "folding.sql", "explaining.sql",
)  # fmt: skip
_BLOCK = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_ROWS = re.compile(r"\{rows ([^}]+)\}")
_TOKEN = re.compile(r"\{(\w+)(?: (\w+))?\}")


class Statement(msgspec.Struct, frozen=True):
    """`parameters` in the order the database wants them; `columns` of the bound row set, if it has one."""

    name: str
    sql: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...] = ()


class Dialect(msgspec.Struct, frozen=True):
    """All that the compiler has to know of a database."""

    name: str
    tokens: dict[str, str]
    rows: Callable[[list[tuple[str, str]]], str]
    words: dict[str, str] = {}
    numbered: bool = False
    now: str | None = None


def _rows_from_arrays(columns: list[tuple[str, str]]) -> str:
    """A column after the first that says the same in each row may come as an array of one: encoding is dear."""
    types = {"id": "uuid"}
    arrays = {name: f":{name}::{types.get(kind, kind)}[]" for name, kind in columns}
    values = [f"u.{name}" for name, _ in columns[:1]]
    values += [
        f"case when cardinality({arrays[name]}) = 1 then ({arrays[name]})[1] else u.{name} end as {name}"
        for name, _ in columns[1:]
    ]
    names = ", ".join(arrays)
    return f"(select {', '.join(values)} from unnest({', '.join(arrays.values())}) as u({names})) as rows"


def _rows_from_json(columns: list[tuple[str, str]]) -> str:
    values = ", ".join(f"value ->> {place} as {name}" for place, (name, _) in enumerate(columns))
    return f"(select {values} from json_each(:rows)) as rows"


_HOT = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0"

POSTGRES = Dialect(
    name="postgres",
    tokens={
        "id": "uuid",
        "keyed": "",
        # Half of a page is left for the row's one later version, its end: that update then touches no index.
        "hot_run": "with (fillfactor = 40)",
        "hot_ready": f"with (fillfactor = 90, {_HOT})",
        "hot_lease": f"with (fillfactor = 70, {_HOT})",
        "hot_schedule": f"with (fillfactor = 70, {_HOT})",
        "hot_limit": f"with (fillfactor = 70, {_HOT})",
        "for_update": "for update{}",
        "for_update_skip": "for update{} skip locked",
        "run_columns": RUN_COLUMNS,
        "schedule_columns": SCHEDULE_COLUMNS,
        "schedule_row": SCHEDULE_ROW,
    },
    rows=_rows_from_arrays,
    numbered=True,
    # As a subquery it is asked once for a statement, and an index may be searched with the answer.
    now="(select (extract(epoch from clock_timestamp()) * 1000000)::bigint)",
)

SQLITE = Dialect(
    name="sqlite",
    tokens={
        "id": "text",
        "keyed": "strict, without rowid",
        "hot_run": "strict, without rowid",
        "hot_ready": "strict, without rowid",
        "hot_lease": "strict, without rowid",
        "hot_schedule": "strict, without rowid",
        "hot_limit": "strict, without rowid",
        "for_update": "",
        "for_update_skip": "",
        "run_columns": RUN_COLUMNS,
        "schedule_columns": SCHEDULE_COLUMNS,
        "schedule_row": SCHEDULE_ROW,
    },
    rows=_rows_from_json,
    words={"bigint": "integer", "smallint": "integer", "strpos": "instr"},
)


@cache
def blocks(dialect_name: str) -> dict[str, str]:
    """The named blocks of all shared files; the database's own file replaces a shared block of the same name."""
    folder = resources.files("rota.store") / "sql"
    files = [*_SHARED, f"{dialect_name}.sql"]
    found: dict[str, str] = {}
    for file in files:
        parts = _BLOCK.split((folder / file).read_text())
        found.update(dict(zip(parts[1::2], parts[2::2], strict=True)))
    return found


def migrations(dialect: Dialect) -> list[tuple[int, str, str]]:
    """(version, name, script) in order."""
    folder = resources.files("rota.store") / "sql" / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [(int(file.name[:4]), file.name[5:-4], _translate(file.read_text(), dialect)) for file in files]


def compile_statement(name: str, dialect: Dialect, *, manual_clock: bool) -> Statement:
    """With a manual clock, `:now` is a bound value on every database."""
    text = "\n".join(line for line in blocks(dialect.name)[name].splitlines() if not line.strip().startswith("--"))
    return compile_sql(name, text.strip().rstrip(";"), dialect, manual_clock=manual_clock)


def compile_sql(name: str, text: str, dialect: Dialect, *, manual_clock: bool) -> Statement:
    columns: tuple[str, ...] = ()
    rows = _ROWS.search(text)
    if rows:
        pairs = [(words[0], words[1]) for words in (part.split() for part in rows.group(1).split(","))]
        columns = tuple(column for column, _ in pairs)
        text = text[: rows.start()] + dialect.rows(pairs) + text[rows.end() :]
    text = _translate(text, dialect)
    if dialect.now and not manual_clock:
        text = re.sub(r"(?<![:\w]):now\b", dialect.now, text)
    parameters = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    if dialect.numbered:
        text = re.sub(r"(?<![:\w]):now\b", ":now::bigint", text)
        text = _PARAMETER.sub(lambda match: f"${parameters.index(match.group(1)) + 1}", text)
    return Statement(name, text, parameters, columns)


def _translate(text: str, dialect: Dialect) -> str:
    def token(match: re.Match[str]) -> str:
        of = f" of {match.group(2)}" if match.group(2) else ""
        return dialect.tokens[match.group(1)].format(of)

    text = _TOKEN.sub(token, text)
    for word, own in dialect.words.items():
        text = re.sub(rf"\b{word}\b", own, text)
    return text
