"""Import of systemd: timers and the services that they start become schedules of a job that runs commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rota.core.formats.calendar_events import cron_of
from rota.core.formats.imported import Imported, Remarks, convert
from rota.values.durations import format_duration

Unit = Mapping[str, Mapping[str, Sequence[str]]]
"""Section → key → its values, in order."""

_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")
_UNITS = {
    "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "": 1, "s": 1, "sec": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400, "w": 604800, "week": 604800, "weeks": 604800,
}  # fmt: skip
_STARTS = ("OnBootSec", "OnStartupSec", "OnActiveSec")
_TIMER = {
    "OnCalendar", "OnUnitActiveSec", "OnUnitInactiveSec", *_STARTS, "Persistent", "RandomizedDelaySec", "AccuracySec",
    "Unit", "RemainAfterElapse",
}  # fmt: skip
_SERVICE = {"Type", "ExecStart", "Environment", "WorkingDirectory", "User", "TimeoutStartSec", "TimeoutSec"}


def read_timers(files: Iterable[tuple[str, str]], job: str, zone: str | None) -> Imported:
    """Convert `.timer` files; the services that they start are among the files. `zone` is the machine's."""
    units = {name: unit(text) for name, text in files}
    remarks = Remarks()

    def read(name: str, timer: Unit, own: Remarks) -> dict[str, Any]:
        settings = timer.get("Timer", {})
        for key in sorted(settings.keys() - _TIMER):
            own.left_out(name, key)
        service = _last(settings, "Unit") or f"{name}.service"
        if service not in units:
            raise ValueError(f"the service {service} that it starts is not there: name its file, too")
        times = _times(name, settings, zone, own)
        document = {"name": name, "job": job, **times, **_service(name, units[service].get("Service", {}), own)}
        if "cron" in times and not _is_true(_last(settings, "Persistent")):
            document["catch_up"] = "none"
        if delay := _last(settings, "RandomizedDelaySec"):
            document["jitter"] = format_duration(span(delay))
        about = _last(timer.get("Unit", {}), "Description")
        return {**document, "description": about} if about else document

    timers = [(name.removesuffix(".timer"), each) for name, each in units.items() if name.endswith(".timer")]
    return convert(timers, read, remarks)


def unit(text: str) -> Unit:
    """Parse a unit file. An empty value clears those before it, as systemd does."""
    sections: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for raw in re.sub(r"\\\n", " ", text).splitlines():
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("[") and line.endswith("]"):
            section = sections.setdefault(line[1:-1], {})
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"{line:.60} is no line of a unit file")
        values = section.setdefault(key.strip(), [])
        values.append(value.strip())
        if not value.strip():
            values.clear()
    return sections


def _last(settings: Mapping[str, Sequence[str]], key: str) -> str | None:
    values = settings.get(key)
    return values[-1] if values else None


def _is_true(value: str | None) -> bool:
    return (value or "").lower() in ("1", "yes", "y", "true", "t", "on")


def span(text: str) -> timedelta:
    """Parse a time span: `1h 30min`, or seconds."""
    parts = _SPAN.findall(text)
    if "".join(_SPAN.sub("", text).split()) or not parts or any(word not in _UNITS for _, word in parts):
        raise ValueError(f"the time span {text!r} is not understood")
    return timedelta(seconds=sum(float(number) * _UNITS[word] for number, word in parts))


def _times(name: str, settings: Mapping[str, Sequence[str]], zone: str | None, remarks: Remarks) -> dict[str, Any]:
    events = settings.get("OnCalendar") or ()
    intervals = [key for key in ("OnUnitActiveSec", "OnUnitInactiveSec") if settings.get(key)]
    starts = [key for key in _STARTS if settings.get(key)]
    if len(intervals) + bool(events) > 1:
        both = " and ".join([*(["OnCalendar"] if events else []), *intervals])
        raise ValueError(f"it has {both}: make it two timers")
    if intervals:
        if starts:
            remarks.of(name, f"{' and '.join(starts)} is about the start of a machine, which is no time, and left out")
        length = format_duration(span(settings[intervals[0]][-1]))
        if intervals == ["OnUnitInactiveSec"]:
            return {"after": length}
        remarks.of(name, "intervals count from 1970 in UTC, not from the last start")
        return {"every": length}
    if starts or not events:
        raise ValueError(f"{' and '.join(starts) or 'it'} names no time that comes again: run it when a worker starts")
    parts = [_part(event, zone) for event in events]
    if any("timezone" not in part for part in parts) and zone is None:
        remarks.add("times without a zone are read as UTC, but systemd uses the machine's: set it with --tz")
    return parts[0] if len(parts) == 1 else {"either": parts}


def _part(event: str, zone: str | None) -> dict[str, Any]:
    expression, own_zone = cron_of(event)
    place = own_zone or zone
    return {"cron": expression, **({} if place in (None, "UTC") else {"timezone": place})}


def _service(name: str, service: Mapping[str, Sequence[str]], remarks: Remarks) -> dict[str, Any]:
    for key in sorted(service.keys() - _SERVICE):
        if key.startswith("Exec") or key in ("EnvironmentFile", "LoadCredential"):
            raise ValueError(f"its service has {key}, which only systemd does")
        remarks.left_out(name, key, "is systemd's to enforce")
    commands = [_command(line) for line in service.get("ExecStart") or ()]
    if not commands:
        raise ValueError("its service has no ExecStart")
    folder = _last(service, "WorkingDirectory")
    prefix = f"cd {shlex.quote(folder)} && " if folder else ""
    environment = dict(_variable(word) for line in service.get("Environment", ()) for word in shlex.split(line))
    user = _last(service, "User")
    payload = {
        "command": prefix + " && ".join(commands),
        **({"environment": environment} if environment else {}),
        **({"user": user} if user else {}),
    }
    limit = _last(service, "TimeoutStartSec") or _last(service, "TimeoutSec")
    times = {} if limit in (None, "infinity", "0") else {"timeout": format_duration(span(str(limit)))}
    return {"payload": payload, **times}


def _variable(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def _command(line: str) -> str:
    """Write a command of systemd for a shell, which would expand what systemd does not."""
    ignored = line.startswith("-")
    words = line.removeprefix("-")
    if words[:1] in ("@", ":", "+", "!", "|"):
        raise ValueError(f"ExecStart begins with {words[0]!r}, which only systemd knows")
    if "$" in words:
        raise ValueError("ExecStart has variables, which systemd fills in: write the command by hand")
    if re.search(r"%[^%]|%$", words.replace("%%", "")):
        raise ValueError("ExecStart has a specifier such as %i, which systemd fills in")
    command = shlex.join(shlex.split(words.replace("%%", "%")))
    return f"{{ {command} || true; }}" if ignored else command
