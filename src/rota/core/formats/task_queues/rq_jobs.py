"""Import of rq-scheduler: a JSON list of its jobs, as docs/coming-from/rq-scheduler.md exports it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from rota.core.calendar.notation import instant_of, written_instant
from rota.core.formats.cron_fields import five_fields
from rota.core.formats.imported import Imported, Remarks, convert, job_list
from rota.core.formats.task_queues.tasks import Tasks
from rota.values.durations import format_duration

_EXAMPLE = '[{"id": "…", "func_name": "shop.bill", "args": [], "kwargs": {}, "origin": "default", "meta": {…}, …}]'
_KNOWN = ("id", "func_name", "args", "kwargs", "origin", "timeout", "description", "meta", "scheduled_at", "result_ttl")


def read_rq_jobs(text: str, tasks: Tasks, zone: str | None) -> Imported:
    """Convert the list; `zone` is that of jobs with `use_local_timezone`."""

    def read(name: str, job: object, remarks: Remarks) -> dict[str, Any]:
        if not isinstance(job, Mapping):
            raise ValueError("it is no object")
        for key in sorted(job.keys() - {*_KNOWN}):
            remarks.left_out(name, str(key))
        meta = job.get("meta") or {}
        call = tasks.call(job.get("func_name"), job.get("args"), job.get("kwargs"))
        document = {"name": name, **call, **_times(meta, job, zone)}
        if meta.get("repeat") is not None:
            document["max_runs"] = meta["repeat"]
        if job.get("origin") not in (None, "default"):
            document["queue"] = job["origin"]
        if isinstance(timeout := job.get("timeout"), int | float) and timeout > 0:
            document["timeout"] = format_duration(timedelta(seconds=timeout))
        return document

    return convert([(_name(job), job) for job in job_list(text, _EXAMPLE)], read)


def _name(job: object) -> str:
    return str(job.get("id", "")) if isinstance(job, Mapping) else f"{job!r:.60}"


def _times(meta: Mapping[str, Any], job: Mapping[str, Any], zone: str | None) -> dict[str, Any]:
    if meta.get("cron_string"):
        words = str(meta["cron_string"]).split()
        if len(words) != 5:
            raise ValueError(f"its cron_string has {len(words)} fields instead of 5")
        expression = five_fields(*words)  # its days must both hold
        if not meta.get("use_local_timezone"):
            return {"cron": expression}
        if zone is None:
            raise ValueError("it uses the local time of its machine: name the zone with --tz")
        return {"cron": expression, "timezone": zone}
    at = job.get("scheduled_at")
    if meta.get("interval"):
        anchor = {} if at is None else {"anchor": written_instant(instant_of(at))}
        return {"every": format_duration(timedelta(seconds=meta["interval"])), **anchor}
    if at is None:
        raise ValueError("it has neither cron_string, interval nor scheduled_at")
    return {"once": written_instant(instant_of(at))}
