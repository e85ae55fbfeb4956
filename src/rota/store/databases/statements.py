"""SQL from the `.sql` files, by name, compiled for one database.

The files are shared; what differs between the databases is a handful of tokens:

    :name                    a bound value; `:now` is the database's own clock where it has one
    {rows id id, no int}     a set of bound rows, named `rows`, with these columns
    {many id id, no int}     the same for thousands of them, in a statement that has no other bound value
    {for_update t}           row locks, where the database has them
    {then t a | a.id = b.id} `join t a on a.id = b.id`, and never the other way round: what stands before it comes first
    {keyed} {hot_ready} ...  how a table is stored
    {open} {limited_later}   what keeps a run, as a number of `rota_ready.hold` (`rota.core.runs.admission`)
    {later}                  the numbers of runs that are not due yet
    {fence_floor}            the least fence that may be given in the database's epoch
    {hold_of lim | need | l} the number for a run with this limit key and this need (null: none), not due yet if `l`
    {alike name}             that statement for rows of one shape: each array of shapes becomes a value
    {unlocked name}          that statement without its row locks, to look only
    {part name}              what several statements have in common, from `-- part: name`
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import resources

import msgspec

from rota.core.runs.admission import HOLD_TOKENS, Admission, hold_of
from rota.core.workers.requirements import CONDUCTS

RUN_COLUMNS = (
    "id, job, job_version, queue, priority, scope_kind, scope_id, key, state, reason, fence, attempt, max_attempts, "
    "payload, result, error, created_at, run_at, started_at, finished_at, retry_of, worker_id, tags, metadata, "
    "schedule, plan_time, covers_from, missed_count, done, summary, progress_at, cancelled_by, "
    "wait_since, wait_until, parent_id"
)

SCHEDULE_COLUMNS = (
    "id, name, job, definition, owner, revision, enabled, paused_at, paused_by, pause_reason, resume_at, job_paused, "
    "cursor_at, next_plan, awaits, fired, tzdata, trouble, created_at, updated_at, "
    # Asked for those only that rest because of their job.
    "case when job_paused = 1 then (select p.cancelled_at from rota_pause p "
    "where p.kind = 'job' and p.name = rota_schedule_now.job) end"
)

SCHEDULE_SAYS = "cursor_no, id, name, definition, revision, enabled, paused_at, resume_at, job_paused, owner, declared"
CURSOR_FACTS = "cursor_at, next_plan, open_plan, fired, tzdata, provider, awaits"

_SHARED = (
    "runs/runs.sql", "runs/read.sql", "runs/prune.sql", "limits/limits.sql", "schedules/schedules.sql",
    "planning/planning.sql", "ledger/occurrences.sql", "jobs/jobs.sql", "ledger/backfill.sql", "ledger/compact.sql",
    "ledger/explain.sql", "progress/notes.sql", "runs/bulk.sql", "monitoring/changes.sql", "workers/workers.sql",
    "ledger/audit.sql", "monitoring/gauges.sql", "alerts/emit_signal.sql", "runs/dependencies.sql",
    "access/tokens.sql", "limits/rates.sql", "limits/quotas.sql", "external/external.sql", "workers/requirements.sql",
    "workers/replicas.sql", "alerts/expectations.sql", "alerts/signals.sql", "alerts/notifications.sql",
    "jobs/data_jobs.sql", "jobs/pipelines.sql", "monitoring/monitoring.sql", "monitoring/error_groups.sql",
    "workers/due_work.sql", "ledger/family.sql", "monitoring/attention.sql",
)  # fmt: skip
_SERVES = re.compile(r"-- serves: (\d+)\n")  # the first line of a migration that leaves older programs at work
_BLOCK = re.compile(r"^-- (name|part): (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_ROWS = re.compile(r"\{(rows|many) ([^}]+)\}")
_HOLD = re.compile(r"\{hold_of ([^|]+) \| ([^|]+) \|\s+((?:[^{}]|\{\w+\})+)\}")
_DERIVED = re.compile(r"\{(alike|unlocked|part) (\w+)\}")
_PART = "part "  # before the name of what is a part of statements
_LOCK = re.compile(r"\s+for update skip locked\b")
_SHAPE_COLUMN = re.compile(r", (?:rows\.shape\b|shape int\b)")
_SHAPE_VALUE = re.compile(r"\((:\w+::\w+)\[\]\)\[shape\]")
_THEN = re.compile(r"\{then (\w+) (\w+) \|\s+([^{}]+)\}")
_TOKEN = re.compile(r"\{(\w+)(?: (\w+))?\}")


class Statement(msgspec.Struct, frozen=True):
    """`parameters` in the order the database wants them; `columns` of the bound row set, if it has one."""

    name: str
    sql: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...] = ()


class Migration(msgspec.Struct, frozen=True):
    """`serves`: the oldest schema of a program that can work with what it leaves."""

    version: int
    name: str
    script: str
    serves: int


class Dialect(msgspec.Struct, frozen=True, eq=False):
    """Facts that the compiler has to know of a database. There are two, and each is itself."""

    name: str
    tokens: dict[str, str]
    rows: Callable[[list[tuple[str, str]]], str]
    then: str
    """A join that the planner must not turn round, of `{table}`, `{alias}` and `{condition}`."""
    many: Callable[[list[tuple[str, str]]], str] | None = None
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


def _rows_from_values(columns: list[tuple[str, str]]) -> str:
    """One, that is; `sqlite_rows` makes many of it."""
    values = ", ".join(f"column{place} as {name}" for place, (name, _) in enumerate(columns, 1))
    return f"(select {values} from (values ({', '.join('?' * len(columns))}))) as rows"


KEPT = {
    # A key still leads to the run: whoever repeats the enqueue gets an answer that names it. Or it failed at what is to
    # be done once, and its key is not free yet: without the run, the key would say that it was done.
    "kept_by_key": """exists (select 1 from rota_unique u where u.run_id = r.id
        and (u.held_until > :now or u.once = 1 and r.state <> 'succeeded'))""",
    # A live run follows it, and may ask for its result.
    # With a limit: of an `exists` within a `case` PostgreSQL may make a table of all live runs.
    "kept_by_follower": """((select 1 from rota_followed f join rota_run c on c.id = f.run_id
        where f.after_id = r.id and c.state is null limit 1) is not null)""",
    # It is not the newest finished run of a schedule's lane, or its provider has not named the scope for long.
    "replaced_in_lane": """(r.schedule_id is null or r.retry_of is not null or r.state = 'skipped'
        or (select 1 from rota_schedule s where s.id = r.schedule_id and s.deleted_at is null limit 1) is null
        or exists (
            select 1 from rota_run n where n.schedule_id = r.schedule_id and n.scope_kind = r.scope_kind
                and n.scope_id = r.scope_id and n.retry_of is null
                and n.plan_time > coalesce(r.plan_time, r.created_at) and n.state is not null and n.state <> 'skipped')
        or (r.plan_time is null and exists (
            select 1 from rota_run n where n.schedule_id = r.schedule_id and n.scope_kind = r.scope_kind
                and n.scope_id = r.scope_id and n.retry_of is null and n.plan_time is null and n.id > r.id
                and n.state is not null and n.state <> 'skipped'))
        or (1 = (
                select 1 from rota_scope_span p
                join rota_schedule_now s on s.id = p.schedule_id and s.provider is not null
                where p.schedule_id = r.schedule_id and p.scope_kind = r.scope_kind and p.scope_id = r.scope_id limit 1)
            and not exists (
                select 1 from rota_scope_span p where p.schedule_id = r.schedule_id and p.scope_kind = r.scope_kind
                    and p.scope_id = r.scope_id and (p.until is null or p.until >= :now - :keep_for))))""",
    # Planning has not looked at it since it ended.
    "kept_by_lane": """exists (
        select 1 from rota_lane_run m join rota_schedule s on s.id = m.schedule_id and s.deleted_at is null
        where m.schedule_id = r.schedule_id and m.scope_kind = r.scope_kind and m.scope_id = r.scope_id
            and m.run_id = r.id)""",
    "kept_by_cursor": """exists (
        select 1 from rota_schedule_now s where s.id = r.schedule_id and s.deleted_at is null
            and s.open_plan = r.plan_time and r.retry_of is null)""",
}
"""Conditions under which an ended run `r` is still needed, whatever retention says, or is not (`replaced_in_lane`)."""
_FENCE_FLOOR = "coalesce((select floor from rota_epoch order by epoch desc limit 1), 0)"
# Fails (`postgres/place.MISPLACED`) in a copy that nobody has accepted, and where a dump made the table anew under a
# connection that stayed: a claim is the one thing that must not wait until a heartbeat notices.
_GUARDED_FLOOR = (
    "coalesce((select floor / case when (is_copy = 0 or accepted_at is not null) "
    "and coalesce(tables = tableoid::bigint, true) then 1 else 0 end from rota_epoch order by epoch desc limit 1), 0)"
)
_HOT = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0"

POSTGRES = Dialect(
    name="postgres",
    tokens={
        "id": "uuid",
        "keyed": "",
        "wide": "",
        # Half of a page is left for the row's one later version, its end: that update then touches no index.
        "hot_run": "with (fillfactor = 40)",
        "hot_ready": f"with (fillfactor = 90, {_HOT})",
        "hot_lease": f"with (fillfactor = 70, {_HOT})",
        "numbered_key": "bigint generated by default as identity primary key",
        "hot_cursor": f"with (fillfactor = 70, {_HOT})",
        "hot_limit": f"with (fillfactor = 70, {_HOT})",
        "fence_floor": _GUARDED_FLOOR,
        "for_update": "for update{}",
        "for_no_key_update": "for no key update{}",
        "for_update_skip": "for update{} skip locked",
        "for_key_share": "for key share{}",
        "name_in_small": 'lower(name collate "C")',  # ASCII only, as SQLite does it
        "error_said": "((error::json ->> 'type') || ': ' || (error::json ->> 'message'))",
        "one_fingerprint": (
            "fingerprint is not null and (fingerprint, run_id) >= (:fingerprint, :floor) "
            "and (fingerprint, run_id) < (:fingerprint, :before) order by fingerprint desc, run_id desc"
        ),
        "error_print": "(error::json ->> 'fingerprint')",
        "queue_of_job": "(definition::json ->> 'queue')",
        "payload_json": "payload::json",
        "among_ids": "id = any(string_to_array(:ids, ',')::uuid[])",
        "name_opens": "''",
        "name_closes": "''",
        "plainly": "#>> '{{}}'",
        "run_columns": RUN_COLUMNS,
        "schedule_columns": SCHEDULE_COLUMNS,
        "schedule_says": SCHEDULE_SAYS,
        "cursor_facts": CURSOR_FACTS,
        "schedule_row": f"{SCHEDULE_SAYS}, has_lanes, {CURSOR_FACTS}",
        **HOLD_TOKENS,
        **KEPT,
    },
    rows=_rows_from_arrays,
    # Of a subquery with an offset PostgreSQL makes no join, so it has no order to choose.
    then="cross join lateral (select * from {table} {alias} where {condition} offset 0) as {alias}",
    numbered=True,
    # As a subquery it is asked once for a statement, and an index may be searched with the answer.
    now="(select (extract(epoch from clock_timestamp()) * 1000000)::bigint)",
)

SQLITE = Dialect(
    name="sqlite",
    tokens={
        "id": "text",
        "keyed": "strict, without rowid",
        # Long rows kept by their key would stand in the inner pages of its tree, too, and make it deep.
        "wide": "strict",
        "hot_run": "strict, without rowid",
        "hot_ready": "strict, without rowid",
        "hot_lease": "strict, without rowid",
        "numbered_key": "integer primary key",
        "hot_cursor": "strict",
        "hot_limit": "strict, without rowid",
        "fence_floor": _FENCE_FLOOR,
        "for_update": "",
        "for_no_key_update": "",
        "for_update_skip": "",
        "for_key_share": "",
        "name_in_small": "lower(name)",
        "error_said": "((error ->> 'type') || ': ' || (error ->> 'message'))",
        "one_fingerprint": (
            "fingerprint = :fingerprint and run_id >= :floor and run_id < :before order by run_id desc"
        ),
        "error_print": "(error ->> '$.fingerprint')",
        "queue_of_job": "(definition ->> '$.queue')",
        "payload_json": "payload",
        "among_ids": """id in (select value from json_each('["' || replace(:ids, ',', '","') || '"]'))""",
        "name_opens": "'$.\"'",  # a bare one that is a number would be taken for a place in an array
        "name_closes": "'\"'",
        "plainly": "->> '$'",
        "run_columns": RUN_COLUMNS,
        "schedule_columns": SCHEDULE_COLUMNS,
        "schedule_says": SCHEDULE_SAYS,
        "cursor_facts": CURSOR_FACTS,
        "schedule_row": f"{SCHEDULE_SAYS}, has_lanes, {CURSOR_FACTS}",
        **HOLD_TOKENS,
        **KEPT,
    },
    rows=_rows_from_json,
    then="cross join {table} {alias} on {condition}",
    many=_rows_from_values,
    words={
        "bigint": "integer",
        "greatest": "max",
        "smallint": "integer",
        "strpos": "instr",
        "json_typeof": "json_type",
    },
)


@cache
def blocks(dialect_name: str) -> dict[str, str]:
    """The named blocks of all shared files; the database's own file replaces a shared block of the same name."""
    folder = resources.files("rota.store") / "sql"
    files = [*_SHARED, f"databases/{dialect_name}.sql"]
    statements: dict[str, str] = {}
    for file in files:
        parts = _BLOCK.split((folder / file).read_text())
        for kind, plain_name, sql in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            name = plain_name if kind == "name" else _PART + plain_name
            if name in statements and file in _SHARED:
                raise ValueError(f"two statements are called {name}, the second in {file}")
            statements[name] = sql

    def derived(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "part":
            return statements[_PART + name].strip()
        return _LOCK.sub("", statements[name]) if kind == "unlocked" else _of_one_shape(statements[name])

    return {name: _DERIVED.sub(derived, sql) for name, sql in statements.items() if not name.startswith(_PART)}


def _of_one_shape(sql: str) -> str:
    """Return a statement over rows with numbered shapes for rows that have all the same."""
    return _SHAPE_VALUE.sub(r"\1", _SHAPE_COLUMN.sub("", sql))


@cache
def migrations(dialect: Dialect) -> tuple[Migration, ...]:
    """Return all migrations in order. What only one database has to do is in a file of its own beside the shared."""
    folder = resources.files("rota.store") / "sql" / "migrations"
    scripts = {file.name: file.read_text() for file in folder.iterdir() if file.name.endswith(".sql")}
    shared = sorted(name for name in scripts if name.count(".") == 1)
    own = {name: scripts.get(f"{name[:-4]}.{dialect.name}.sql", "") for name in shared}
    return tuple(_migration(name, scripts[name], translate(scripts[name] + own[name], dialect)) for name in shared)


@cache
def schema_version() -> int:
    """Return the newest schema that this program knows."""
    return migrations(SQLITE)[-1].version


def _migration(file: str, text: str, script: str) -> Migration:
    version, served = int(file[:4]), _SERVES.match(text)
    return Migration(version, file[5:-4], script, int(served[1]) if served else version)


@cache
def compile_statement(name: str, dialect: Dialect, *, manual_clock: bool) -> Statement:
    """Compile a statement. With a manual clock, `:now` is a bound value on every database."""
    text = "\n".join(line for line in blocks(dialect.name)[name].splitlines() if not line.strip().startswith("--"))
    return compile_sql(name, text.strip().rstrip(";"), dialect, manual_clock=manual_clock)


def compile_sql(name: str, text: str, dialect: Dialect, *, manual_clock: bool) -> Statement:
    columns: tuple[str, ...] = ()
    rows = _ROWS.search(text)
    if rows:
        pairs = [(words[0], words[1]) for words in (part.split() for part in rows.group(2).split(","))]
        one_by_one = dialect.many if rows.group(1) == "many" else None
        columns = () if one_by_one else tuple(column for column, _ in pairs)
        text = text[: rows.start()] + (one_by_one or dialect.rows)(pairs) + text[rows.end() :]
    text = translate(text, dialect)
    if dialect.now and not manual_clock:
        text = re.sub(r"(?<![:\w]):now\b", dialect.now, text)
    parameters = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    if dialect.numbered:
        # Bound only with a manual clock: in `:now - :age` PostgreSQL could not tell what type it is.
        text = re.sub(r"(?<![:\w]):now\b", ":now::bigint", text)
        text = _PARAMETER.sub(lambda match: f"${parameters.index(match.group(1)) + 1}", text)
    return Statement(name, text, parameters, columns)


def _hold_of(match: re.Match[str]) -> str:
    """Write the one expression that computes `rota_ready.hold`: SQL for what `hold_of` is in Python.

    A parent comes first: it counts for limits, and is never claimed itself, so it waits for none.
    """
    limit, need, later = match.groups()

    def by_time(admission: Admission) -> str:
        now, not_yet = (hold_of(admission, due=due) for due in (True, False))
        return f"case when {later} then {not_yet} else {now} end"

    parent = (f"substr({need}, 1, 1) = '{CONDUCTS}'", str(hold_of(Admission.PARENT, due=True)))
    limited = (f"{limit} is not null", by_time(Admission.LIMITED))
    restricted = (f"{need} is not null", by_time(Admission.RESTRICTED))
    cases = [limited] if need == "null" else [parent, limited, restricted]
    whens = " ".join(f"when {condition} then {number}" for condition, number in cases)
    return f"case {whens} else {by_time(Admission.OPEN)} end"


def translate(text: str, dialect: Dialect) -> str:
    """Replace the tokens, but for rows and bound values, by what this database wants."""

    def token(match: re.Match[str]) -> str:
        of = f" of {match.group(2)}" if match.group(2) else ""
        return dialect.tokens[match.group(1)].format(of)

    def then(match: re.Match[str]) -> str:
        table, alias, condition = match.groups()
        return dialect.then.format(table=table, alias=alias, condition=condition)

    text = _TOKEN.sub(token, _THEN.sub(then, _HOLD.sub(_hold_of, text)))
    for word, own in dialect.words.items():
        text = re.sub(rf"\b{word}\b", own, text)
    return text
