"""Import of job lists of an interval scheduler (`interval_minutes` + `interval_type`) as schedule documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rota.core.formats.imported import Imported, Remarks, convert, job_list
from rota.core.schedules.vocabulary import translated

_EXAMPLE = '[{"source_name": "…", "interval_minutes": 30, …}]'
_PAYLOAD = ("source_id", "source_name", "url")
_KNOWN = {
    *_PAYLOAD, "name", "id", "job", "payload", "interval_minutes", "interval_type", "anchor", "schedule_time",
    "schedule_enabled", "is_paused", "max_retries", "retry_backoff_seconds", "metadata",
}  # fmt: skip


def read_intervals(text: str | bytes, *, job: str = "crawl") -> Imported:
    """Parse a list of jobs, or an object with `jobs`; they are counted from 1, as lines are."""

    def read(name: str, item: object, remarks: Remarks) -> dict[str, Any]:
        document = _document(item, job)
        if isinstance(item, Mapping):
            for key in sorted(item.keys() - _KNOWN):
                remarks.left_out(name, key)
            if item.get("is_paused"):
                remarks.of(name, f"is paused there: `rota schedule pause {name}`")
        return document

    return convert([(_name_of(item), item) for item in job_list(text, _EXAMPLE)], read)


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
        return {"cron": str(item["schedule_time"])}
    raise ValueError("it runs once, at once, and needs no schedule: `rota run enqueue`")
