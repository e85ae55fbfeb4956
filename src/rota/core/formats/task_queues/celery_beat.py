"""Import of Celery beat: `beat_schedule` of an app or of settings, and the tables of django-celery-beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.core.calendar.notation import instant_of, written_instant
from rota.core.formats.cron_fields import five_fields
from rota.core.formats.imported import Imported, Remarks, convert
from rota.core.formats.task_queues.tasks import Tasks, kind_of
from rota.errors import Invalid
from rota.values.durations import format_duration

TABLES = ("periodictask", "intervalschedule", "crontabschedule", "clockedschedule", "solarschedule")
PREFIX = "django_celery_beat"

_FROM_1970 = "intervals count from 1970 in UTC, not from when beat started"
_SOLAR = "it follows the sun, which rota does not: make `once` schedules from a table of your own"
_CLEANUP = "it prunes Celery's results: rota prunes runs by itself, as `keep` and `keep_for` of their jobs say"
_EXPIRY = "is about waiting in the queue; `catch_up` decides how late a run may begin"
_CRONTAB = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
_ENTRY = ("task", "schedule", "args", "kwargs", "options", "relative")
_ALWAYS = ("headers", "exchange", "routing_key")


def read_beat_schedule(schedule: object, tasks: Tasks, zone: str) -> Imported:
    """Convert `beat_schedule`; `zone` is the app's timezone."""
    if not isinstance(schedule, Mapping):
        raise Invalid(f"beat_schedule must be a table, not {kind_of(schedule)}")

    def read(name: str, entry: object, remarks: Remarks) -> dict[str, Any]:
        if not isinstance(entry, Mapping):
            raise ValueError("it is no table")
        for key in sorted(entry.keys() - {*_ENTRY}):
            remarks.left_out(name, str(key))
        times = _times(name, entry.get("schedule"), zone, remarks)
        options = entry.get("options")
        call = tasks.call(entry.get("task"), entry.get("args"), entry.get("kwargs"))
        return {"name": name, **call, **times, **_options(name, dict(options or {}), remarks)}

    return convert([(str(name), entry) for name, entry in schedule.items()], read)


def _times(name: str, schedule: object, zone: str, remarks: Remarks) -> dict[str, Any]:
    """Return the keys of the trigger. Celery's classes are known by what they have: Celery need not be installed."""
    if hasattr(schedule, "_orig_minute"):
        parts = [getattr(schedule, f"_orig_{part}") for part in _CRONTAB]
        return _cron(parts, zone)
    if hasattr(schedule, "lat") and hasattr(schedule, "event"):
        raise ValueError(_SOLAR)
    if getattr(schedule, "relative", False):
        remarks.of(name, "`relative` rounds to the unit of the interval, as an interval that counts from 1970 does")
    interval = getattr(schedule, "run_every", schedule)
    if isinstance(interval, int | float) and not isinstance(interval, bool):
        interval = timedelta(seconds=interval)
    if not isinstance(interval, timedelta):
        raise ValueError(f"its schedule is a {kind_of(schedule)}, which rota does not know")
    remarks.add(_FROM_1970)
    return {"every": format_duration(interval)}


def _cron(parts: Sequence[object], zone: str) -> dict[str, Any]:
    return {"cron": five_fields(*parts), **({} if zone == "UTC" else {"timezone": zone})}


def _options(name: str, options: dict[str, Any], remarks: Remarks) -> dict[str, Any]:
    document: dict[str, Any] = {}
    queue, priority, countdown = (options.pop(key, None) for key in ("queue", "priority", "countdown"))
    if queue is not None:
        document["queue"] = str(getattr(queue, "name", queue))
    if priority is not None:
        document["priority"] = priority
        remarks.add("a higher priority goes first, as with RabbitMQ; with Redis as Celery's broker, a lower one did")
    if countdown is not None:
        document["delay"] = format_duration(timedelta(seconds=countdown))
    for key, value in options.items():
        if value not in (None, "", "{}", {}):
            remarks.left_out(name, key, _EXPIRY if key.startswith("expire") else None)
    return document


def beat_tables(text: str) -> dict[str, list[dict[str, Any]]]:
    """Parse what `manage.py dumpdata django_celery_beat` prints: rows by table."""
    try:
        records = msgspec.json.decode(text)
        tables: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
        for record in records:
            app, _, table = record["model"].partition(".")
            if app == PREFIX and table in tables:
                tables[table].append({"id": record["pk"], **record["fields"]})
        if not any(tables.values()):
            raise KeyError(PREFIX)
    except (msgspec.DecodeError, RecursionError, TypeError, KeyError, AttributeError):
        hint = "python manage.py dumpdata django_celery_beat > beat.json"
        raise Invalid("the file is no dump of django_celery_beat", hint=hint) from None
    return tables


def read_beat_tables(tables: Mapping[str, Sequence[Mapping[str, Any]]], tasks: Tasks) -> Imported:
    """Convert rows of django-celery-beat; references may be called `crontab`, as in dumps, or `crontab_id`."""
    rows = {table: {row["id"]: row for row in tables[table]} for table in TABLES}

    def read(name: str, task: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
        if task["task"] == "celery.backend_cleanup":
            raise ValueError(_CLEANUP)
        call = tasks.call(task["task"], _json(task["args"], "args"), _json(task["kwargs"], "kwargs"))
        names = ("queue", "priority", "expires", "expire_seconds", *_ALWAYS)
        document = {"name": name, **call, **_stored_times(task, rows, remarks)}
        document |= _options(name, {key: task.get(key) for key in names}, remarks)
        if task.get("start_time"):
            document["start_at"] = _instant(task["start_time"])
        if task.get("one_off") and "once" not in document:
            document["max_runs"] = 1
        if task.get("description"):
            document["description"] = task["description"]
        return document if task["enabled"] else {**document, "enabled": False}

    return convert([(task["name"], task) for task in tables["periodictask"]], read)


def _json(text: Any, key: str) -> Any:
    try:
        return msgspec.json.decode(text or "null")
    except (msgspec.DecodeError, RecursionError, TypeError):
        raise ValueError(f"its {key} are no JSON: {text!r:.60}") from None


def _stored_times(
    task: Mapping[str, Any], rows: Mapping[str, Mapping[Any, Mapping[str, Any]]], remarks: Remarks
) -> dict[str, Any]:
    def row(kind: str) -> Mapping[str, Any] | None:
        id = task.get(kind, task.get(f"{kind}_id"))
        if id is not None and id not in rows[f"{kind}schedule"]:
            raise ValueError(f"its {kind} {id} is missing")
        return None if id is None else rows[f"{kind}schedule"][id]

    if crontab := row("crontab"):
        return _cron([crontab[part] for part in _CRONTAB], str(crontab.get("timezone") or "UTC"))
    if interval := row("interval"):
        remarks.add(_FROM_1970)
        return {"every": format_duration(timedelta(**{interval["period"]: interval["every"]}))}
    if clocked := row("clocked"):
        return {"once": _instant(clocked["clocked_time"])}
    raise ValueError(_SOLAR if row("solar") else "it has no schedule")


def _instant(value: object) -> str:
    """Write an instant of the database: a datetime, or text that SQLite has without the zone, which is UTC."""
    if isinstance(value, datetime):
        return written_instant(value)
    text = str(value).replace(" ", "T")
    return written_instant(instant_of(text if text.endswith("Z") or "+" in text else f"{text}Z"))
