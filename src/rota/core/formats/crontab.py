"""Import of crontabs: parsed as cron does, each entry becomes a schedule document; others are reported by line."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from rota.core.calendar.cron_parser import read
from rota.core.calendar.cron_times import CronTimes, FoldMode, GapMode, cron_times
from rota.core.calendar.notation import written_instant
from rota.core.calendar.times import Intervals
from rota.core.calendar.triggers import cron
from rota.core.calendar.zones import DAY
from rota.core.formats.imported import Imported, Unconverted, reason
from rota.core.jobs.payload_template import check_template
from rota.errors import RotaError
from rota.values.durations import format_duration
from rota.values.instants import instant

_ENVIRONMENT = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z_]\w*)\s*=\s*(.*?)\s*""", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
_CHANGE_FOLDER = re.compile(r"\s*cd\s+\S+\s*(?:&&|;)\s*")
_BEYOND_COMMAND = re.compile(r"\s[12&]?[<>]|[|;&<>%]")
_FIXED_ZONES = ("UTC", "UCT", "GMT", "Zulu", "Universal", "Greenwich")
_COMPARED = range(19_723, 19_723 + 731)  # 2024 and 2025: a leap year and another one
_LONGEST_INTERVAL = 7 * DAY  # months and years are not even, though two of them may look so
_LONGEST_NAME = 60
_UNZONED = "times are read as UTC, but cron uses the machine's time zone: set it with --tz"


class _Entry(msgspec.Struct, frozen=True):
    expression: str
    zone: str
    command: str
    description: str
    payload: dict[str, Any]
    is_zoned: bool


def read_crontab(
    text: str, *, job: str = "run_command", zone: str | None = None, system: bool = False, as_every: bool = False
) -> Imported:
    """Parse a crontab. `zone` is that of entries without CRON_TZ or TZ, by default UTC, which is remarked; `system`:
    it has a column for the user, as /etc/crontab does; `as_every`: even intervals become `every`.
    """
    place = zone or "UTC"
    cron("@daily", place)
    entries: list[_Entry] = []
    unconverted: list[Unconverted] = []
    environment: dict[str, str] = {}
    comments: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("#"):
            comments += _comment(line, system)
            continue
        if line and not _set_environment(line, environment):
            try:
                entries.append(_entry(line, system, environment, place, " ".join(comments)))
            except (RotaError, ValueError) as error:
                unconverted.append(Unconverted(number, line, reason(error, "")))
        comments = []
    names = _names(entries)
    documents = [_document(name, job, entry, as_every) for name, entry in zip(names, entries, strict=True)]
    is_assumed = zone is None and not all(entry.is_zoned for entry in entries)
    return Imported(tuple(documents), tuple(unconverted), (_UNZONED,) if is_assumed else ())


def _comment(line: str, system: bool) -> list[str]:
    """Return the text of a comment; nothing if it is an entry that somebody switched off."""
    text = line.lstrip("#").strip()
    try:
        _split(text, system)
    except (RotaError, ValueError):
        return [text] if text else []
    return []


def _set_environment(line: str, environment: dict[str, str]) -> bool:
    shape = _ENVIRONMENT.fullmatch(line)
    if shape is None:
        return False
    name, value = shape[1].strip("\"'"), shape[2]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    environment[name] = value
    return True


def _entry(line: str, system: bool, environment: dict[str, str], zone: str, description: str) -> _Entry:
    own_zone = environment.get("CRON_TZ") or environment.get("TZ", "").removeprefix(":")
    place = own_zone or zone
    expression, user, command = _split(line, system)
    cron(expression, place)
    command, stdin = _split_stdin(command)
    payload: dict[str, Any] = {"command": command}
    kept = {name: value for name, value in environment.items() if name != "CRON_TZ"}
    payload |= ({"environment": kept} if kept else {}) | ({"user": user} if user else {})
    payload |= {} if stdin is None else {"stdin": stdin}
    if check_template(payload):
        raise ValueError("it has a word in braces that rota would fill in: write this schedule by hand")
    return _Entry(expression, place, command, description, payload, bool(own_zone))


def _split(line: str, system: bool) -> tuple[str, str, str]:
    """Split an entry into expression, user and command."""
    times = 1 if line.startswith("@") else 5
    words = line.removeprefix("-").split(None, times + system)  # "-" keeps some crons from logging
    if len(words) < times + system + 1:
        raise ValueError("it has too few fields: 5 for the time" + (", the user" if system else "") + " and a command")
    expression = " ".join(words[:times])
    if expression.lower() == "@reboot":
        raise ValueError("it is for the start of a machine, which is no time")
    read(expression)
    return expression, words[times] if system else "", words[-1].strip()


def _split_stdin(command: str) -> tuple[str, str | None]:
    """Split a command from its input: an unescaped % ends the command, further ones are new lines of the input."""
    parts = [part.replace("\\%", "%") for part in re.split(r"(?<!\\)%", command)]
    if len(parts) == 1:
        return parts[0], None
    stdin = "\n".join(parts[1:])
    return parts[0].rstrip(), stdin if stdin.endswith("\n") else f"{stdin}\n"


def _names(entries: Sequence[_Entry]) -> list[str]:
    """Name entries after their commands; equal names get a suffix that depends only on the entry."""
    plain = [_slug(entry.command) for entry in entries]
    often = Counter(plain)
    marked = [
        name if often[name] == 1 else f"{name}-{_mark(entry)}" for name, entry in zip(plain, entries, strict=True)
    ]
    return list(_numbered(marked))


def _numbered(names: Iterable[str]) -> Iterable[str]:
    """Number the names of lines that occur twice."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}-{seen[name]}"


def _slug(command: str) -> str:
    simple = _CHANGE_FOLDER.sub("", command, count=1)
    words = [word for word in _BEYOND_COMMAND.split(simple, maxsplit=1)[0].split() if not _ASSIGNMENT.fullmatch(word)]
    if words:
        words[0] = re.sub(r"\.\w+$", "", words[0].rstrip("/").rpartition("/")[2])
    slug = re.sub(r"[^a-z0-9_]+", "-", " ".join(words).lower()).strip("-")
    return slug[:_LONGEST_NAME].rstrip("-") or "command"


def _mark(entry: _Entry) -> str:
    facts = [entry.expression, entry.zone, entry.payload]
    return hashlib.blake2b(msgspec.json.encode(facts, order="deterministic"), digest_size=3).hexdigest()


def _document(name: str, job: str, entry: _Entry, as_every: bool) -> dict[str, Any]:
    times = (even_interval(entry.expression, entry.zone) if as_every else None) or {"cron": entry.expression}
    place = {"timezone": entry.zone} if "cron" in times and entry.zone != "UTC" else {}
    about = {"description": entry.description} if entry.description else {}
    return {"name": name, "job": job, **times, **place, "payload": entry.payload, **about}


def even_interval(expression: str, timezone: str) -> dict[str, str] | None:
    """Return the `every` that fires exactly when the cron expression does, if there is one.

    Only in a zone that never changes its clocks; compared second by second over two years.
    """
    if not (timezone in _FIXED_ZONES or timezone.startswith("Etc/")) or read(expression).has_hash:
        return None
    times = cron_times(expression, timezone, GapMode.AFTER, FoldMode.FIRST, "")
    start = _COMPARED[0] * DAY - 1
    first = times.next(start)
    second = None if first is None else times.next(first)
    if first is None or second is None:
        return None
    interval = second - first
    if interval > _LONGEST_INTERVAL or not _fire_alike(times, Intervals(interval, first)):
        return None
    written = {"every": format_duration(timedelta(seconds=interval))}
    phase = first % interval
    return written if phase == 0 else {**written, "anchor": written_instant(instant(phase * 1_000_000))}


def _fire_alike(times: CronTimes, intervals: Intervals) -> bool:
    return all(times.bits(day) == intervals.bits(day) for day in _COMPARED)
