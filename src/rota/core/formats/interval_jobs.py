"""Import of job lists of an interval scheduler (`interval_minutes` + `interval_type`) as schedule documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rota.core.calendar.triggers import cron
from rota.core.formats.crontab import Unconverted
from rota.core.schedules.documents import parse
from rota.core.schedules.vocabulary import translated
from rota.errors import Invalid, RotaError

_PAYLOAD = ("source_id", "source_name", "url")
_KNOWN = {
    *_PAYLOAD, "name", "id", "job", "payload", "interval_minutes", "interval_type", "anchor", "schedule_time",
    "schedule_enabled", "is_paused", "max_retries", "retry_backoff_seconds", "metadata",
}  # fmt: skip


class IntervalJobs(msgspec.Struct, frozen=True):
    """Contents of a job list; `remarks` are about jobs that became schedules, but with something left to do."""

    documents: tuple[dict[str, Any], ...]
    unconverted: tuple[Unconverted, ...]
    remarks: tuple[str, ...] = ()


def read_intervals(text: str | bytes, *, job: str = "crawl") -> IntervalJobs:
    """Parse a list of jobs, or an object with `jobs`; they are counted from 1, as lines are."""
    try:
        content = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Invalid(f"the file is no JSON: {error}") from None
    jobs = content.get("jobs") if isinstance(content, dict) else content
    if not isinstance(jobs, list):
        raise Invalid("the file must hold a list of jobs", hint='[{"source_name": "…", "interval_minutes": 30, …}]')
    documents: dict[str, dict[str, Any]] = {}
    unconverted, remarks = [], []
    unknown: dict[str, list[str]] = {}
    for number, item in enumerate(jobs, 1):
        try:
            document = _document(item, job)
            if document["name"] in documents:
                raise ValueError(f"another job is called {document['name']!r}: give one of them a name")
            parse(document)
        except (RotaError, ValueError) as error:
            why = getattr(error, "message", str(error)).removeprefix(f"schedule {_name_of(item)!r}: ")
            unconverted.append(Unconverted(number, _name_of(item), why))
            continue
        documents[document["name"]] = document
        for key in item.keys() - _KNOWN:
            unknown.setdefault(key, []).append(document["name"])
        if item.get("is_paused"):
            remarks.append(f"{document['name']} is paused there: `rota schedule pause {document['name']}`")
    remarks += [_left_out(key, names) for key, names in sorted(unknown.items())]
    return IntervalJobs(tuple(documents.values()), tuple(unconverted), tuple(remarks))


def _left_out(key: str, names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{key} of {names[0]}{more} is not known, and left out"


def _name_of(item: object) -> str:
    if not isinstance(item, Mapping):
        return f"{item!r:.60}"
    return next((str(item[key]) for key in ("name", "source_name", "source_id", "id") if item.get(key)), "")


def _document(item: object, job: str) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise ValueError("it is no object")
    payload = {key: item[key] for key in _PAYLOAD if item.get(key) is not None}
    document = {
        "name": _name_of(item),
        "job": item.get("job", job),
        **_times(item),
        "payload": item.get("payload", payload),
    }
    if not item.get("schedule_enabled", True):
        document["enabled"] = False
    document |= translated({key: item.get(key) for key in ("max_retries", "retry_backoff_seconds")})
    if item.get("metadata"):
        document["metadata"] = item["metadata"]
    return document


def _times(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the trigger. The interval wins over the older cron field, as it did there; it is in minutes
    unless a unit is named.
    """
    if item.get("interval_minutes") is not None:
        times = {"interval_minutes": item["interval_minutes"], "interval_type": item.get("interval_type") or "minutes"}
        return times if item.get("anchor") is None else {**times, "anchor": item["anchor"]}
    if item.get("schedule_time"):
        return {"cron": cron(item["schedule_time"]).expression}
    raise ValueError("it runs once, at once, and needs no schedule: `rota run enqueue`")
