"""Import of APScheduler 3: rows of `apscheduler_jobs`, whose pickled state is read without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

from rota.core.calendar.notation import written_instant
from rota.core.formats.cron_fields import both_days
from rota.core.formats.imported import Imported, Remarks, convert
from rota.core.formats.task_queues.restricted_pickle import Stored, read_pickle
from rota.core.formats.task_queues.tasks import Tasks, kind_of
from rota.values.durations import format_duration

_TRIGGERS = "apscheduler.triggers."
_CLASSES = {
    f"{_TRIGGERS}interval": ("IntervalTrigger",),
    f"{_TRIGGERS}date": ("DateTrigger",),
    f"{_TRIGGERS}calendarinterval": ("CalendarIntervalTrigger",),
    f"{_TRIGGERS}combining": ("OrTrigger", "AndTrigger"),
    f"{_TRIGGERS}cron": ("CronTrigger",),
    f"{_TRIGGERS}cron.fields": ("BaseField", "WeekField", "DayOfMonthField", "DayOfWeekField", "MonthField"),
    f"{_TRIGGERS}cron.expressions": (
        "AllExpression", "RangeExpression", "MonthRangeExpression", "WeekdayRangeExpression",
        "WeekdayPositionExpression", "LastDayOfMonthExpression",
    ),
}  # fmt: skip
_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
_DEFAULT_GRACE = 1


def read_job_store(rows: Iterable[Mapping[str, Any]], tasks: Tasks) -> Imported:
    """Convert rows with `id` and `job_state`."""

    def read(name: str, row: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
        state = read_pickle(bytes(row["job_state"]), _CLASSES)
        if not isinstance(state, dict):
            raise ValueError(f"its state is a {kind_of(state)}")
        call = tasks.call(state.get("func"), state.get("args"), state.get("kwargs"))
        trigger = state.get("trigger")
        document = {"name": name, **call, **_trigger(trigger), **_policies(state)}
        if state.get("next_run_time") is None:
            document["enabled"] = False
            remarks.of(name, "is paused there, and disabled here")
        if isinstance(trigger, Stored) and (jitter := trigger.state.get("jitter")):
            document["jitter"] = format_duration(timedelta(seconds=jitter))
            remarks.of(name, "jitter makes runs later only; there it made them earlier, too")
        return document

    return convert([(str(row["id"]), row) for row in rows], read)


def _policies(state: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    most, grace = state.get("max_instances", 1), state.get("misfire_grace_time")
    if most > 1:
        document |= {"overlap": {"mode": "parallel", "max_overlap": most}}
    late: dict[str, Any] = {} if state.get("coalesce", True) else {"mode": "all"}
    if grace is not None and grace != _DEFAULT_GRACE:
        late = {"mode": "latest", **late, "window": format_duration(timedelta(seconds=grace))}
    return {**document, "catch_up": late} if late else document


def _trigger(trigger: object) -> dict[str, Any]:
    """Return the keys of a trigger and its limits in time."""
    match kind_of(trigger), trigger:
        case "IntervalTrigger", Stored(state=state):
            start = state.get("start_date")
            # Anchors have no fractions of a second, and APScheduler's default is the moment at which the job was added.
            begin = None if start is None else written_instant(start.replace(microsecond=0))
            end = {"end_at": written_instant(state["end_date"])} if state.get("end_date") else {}
            first = {} if begin is None else {"anchor": begin, "start_at": begin}
            return {"every": format_duration(state["interval"]), **first, **end}
        case "DateTrigger", Stored(state=state):
            return {"once": written_instant(state["run_date"])}
        case "CronTrigger", Stored(state=state):
            limits = {"start_at": state.get("start_date"), "end_at": state.get("end_date")}
            given = {key: written_instant(at) for key, at in limits.items() if at is not None}
            zone = zone_name(state.get("timezone"))
            return {"cron": _cron(state["fields"]), **({} if zone == "UTC" else {"timezone": zone}), **given}
        case "OrTrigger", Stored(state=state):
            return {"either": [_part(part) for part in state["triggers"]]}
        case "AndTrigger", _:
            raise ValueError("its AndTrigger has no counterpart: use windows, excluded days, or +FRI in cron")
        case "CalendarIntervalTrigger", Stored(state=state):
            return _calendar_interval(state)
        case name, _:
            raise ValueError(f"its trigger is a {name}, which rota does not know")


def _part(part: object) -> dict[str, Any]:
    """Return one trigger of an OrTrigger, which is pickled as (class, state), or as an object."""
    if isinstance(part, tuple) and len(part) == 2:
        stored = type("Part", (Stored,), {"name_of_class": str(part[0]).rpartition(":")[2]})()
        stored.__setstate__(part[1])
        part = stored
    written = _trigger(part)
    if any(key in written for key in ("start_at", "end_at", "either")):
        raise ValueError("a part of its OrTrigger has dates of its own: make it a schedule of its own")
    return written


def _calendar_interval(state: Mapping[str, Any]) -> dict[str, Any]:
    years, months, weeks, days = state["interval"]
    hour, minute, second = (*state["time"], 0, 0)[:3]
    day = state["start_date"]
    time = f"{second} {minute} {hour}" if second else f"{minute} {hour}"
    if (years, weeks, days) == (0, 0, 0) and 12 % (months or 5) == 0 and day.day <= 28:
        month = "*" if months == 1 else ",".join(str(n) for n in range((day.month - 1) % months + 1, 13, months))
        cron = f"{time} {day.day} {month} *"
    elif (years, months, weeks, days) == (0, 0, 1, 0):
        cron = f"{time} * * {_WEEKDAYS[day.weekday()]}"
    elif (years, months, weeks, days) == (0, 0, 0, 1):
        cron = f"{time} * * *"
    else:
        raise ValueError("its calendar interval is none that a cron expression can say")
    if state.get("end_date") is not None:
        raise ValueError("its calendar interval ends on a day: set end_at by hand")
    zone = zone_name(state.get("timezone"))
    return {"cron": cron, **({} if zone == "UTC" else {"timezone": zone})}


def zone_name(zone: object) -> str:
    """Return the name of a zone; raise for offsets that have none."""
    if isinstance(zone, ZoneInfo) and zone.key is not None:
        return "UTC" if zone.key == "Etc/UTC" else zone.key
    if isinstance(zone, timezone):
        minutes, rest = divmod(int(zone.utcoffset(None).total_seconds()), 60)
        if minutes == 0 and rest == 0:
            return "UTC"
        raise ValueError(f"its zone is the offset {zone}: rota needs a zone's name")
    raise ValueError("its trigger has no zone")


def _cron(fields: Iterable[Stored]) -> str:
    by_name = {field.state["name"]: list(field.state["expressions"]) for field in fields}
    if (week := _written(by_name.pop("week"), "week")) != "*":
        raise ValueError(f"it names weeks of the year ({week}), which cron expressions cannot")
    weekdays, days = by_name["day_of_week"], by_name["day"]
    positions = [day for day in days if kind_of(day) == "WeekdayPositionExpression"]
    if positions and (len(positions) < len(days) or _written(weekdays, "day_of_week") != "*"):
        raise ValueError("it names days by position and otherwise: make them two schedules")
    day = "*" if positions else _written(days, "day")
    weekday = _written(positions or weekdays, "day_of_week")
    year, month, hour, minute, second = (
        _written(by_name[name], name) for name in ("year", "month", "hour", "minute", "second")
    )
    expression = f"{minute} {hour} {day} {month} {both_days(day, weekday)}"
    if year != "*":
        return f"{second} {expression} {year}"
    return expression if second == "0" else f"{second} {expression}"


def _written(expressions: Iterable[Stored], name: str) -> str:
    return ",".join(_expression(expression, name) for expression in expressions)


def _expression(expression: Stored, name: str) -> str:
    state = expression.state
    step = f"/{state['step']}" if state.get("step") else ""
    match kind_of(expression):
        case "AllExpression" if step and name == "day_of_week":
            return ",".join(_WEEKDAYS[:: state["step"]])
        case "AllExpression":
            return f"*{step}"
        case "LastDayOfMonthExpression":
            return "L"
        case "WeekdayPositionExpression":
            place = state["option_num"]
            return f"{_WEEKDAYS[state['weekday']]}#{'L' if place == 5 else place + 1}"
        case _:
            return _range(state, name, step)


def _range(state: Mapping[str, Any], name: str, step: str) -> str:
    first, last = state["first"], state["last"]
    if name == "day_of_week":  # 0 is Monday there
        last = (first if last is None and not step else last if last is not None else 6) + 1
        return ",".join(_WEEKDAYS[first : last : state.get("step") or 1])
    if last is None:
        return f"{first}{step}"
    return f"{first}{step and f'-{last}{step}'}" if first == last else f"{first}-{last}{step}"
