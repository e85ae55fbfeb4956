"""Import of rq-scheduler: its jobs from Redis, or the JSON list that docs/coming-from/rq-scheduler.md exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from rota.core.calendar.notation import instant_of, written_instant
from rota.core.calendar.rules import Rule, compiled
from rota.core.calendar.triggers import cron
from rota.core.formats.cron_fields import five_fields
from rota.core.formats.imported import Imported, Remarks, convert, job_list, table
from rota.core.formats.task_queues.rq_hashes import RqHash, job_of
from rota.core.formats.task_queues.tasks import Tasks
from rota.values.durations import format_duration
from rota.values.instants import micros_at

_EXAMPLE = '[{"id": "…", "func_name": "shop.bill", "args": [], "kwargs": {}, "origin": "default", "meta": {…}, …}]'
_KNOWN = ("id", "func_name", "args", "kwargs", "origin", "timeout", "description", "meta", "scheduled_at", "result_ttl")
_OF_SCHEDULER = ("interval", "repeat", "cron_string", "use_local_timezone")
_WHY_NOT = {
    "ttl": "is about waiting in the queue; `catch_up` decides how late a run may begin",
    "enqueue_at_front": "is the order of a queue; use `priority`",
    "webhooks": "is for notifications",
    "success_callback_name": 'is for `@app.on("run.succeeded")`, or notifications',
    "failure_callback_name": 'is for `@app.on("run.failed")`, or notifications',
}


def rq_list(text: str | bytes) -> list[Any]:
    """Parse the JSON list."""
    return job_list(text, _EXAMPLE)


def read_rq_jobs(jobs: Iterable[object], tasks: Tasks, zone: str | None) -> Imported:
    """Convert jobs of a list, or of Redis; `zone` is that of the machine on which rq-scheduler ran."""

    def read(name: str, entry: object, remarks: Remarks) -> dict[str, Any]:
        job = table(job_of(entry) if isinstance(entry, RqHash) else entry, "entry")
        meta = table(job.get("meta") or {}, "meta")
        for key in sorted(job.keys() - {*_KNOWN}):
            remarks.left_out(name, str(key), _WHY_NOT.get(str(key)))
        for key in sorted(map(str, meta.keys() - {*_OF_SCHEDULER, "queue_class_name"})):
            remarks.left_out(name, f"meta.{key}")
        call = tasks.call(job.get("func_name"), job.get("args"), job.get("kwargs"))
        document = {"name": name, **call, **_times(name, meta, job, zone, remarks)}
        if (repeat := meta.get("repeat")) is not None and repeat >= 0:  # below, it never ends there, either
            document["max_runs"] = repeat or 1
        if job.get("origin") not in (None, "default"):
            document["queue"] = job["origin"]
        if isinstance(timeout := job.get("timeout"), int | float) and timeout > 0:
            document["timeout"] = format_duration(timedelta(seconds=timeout))
        return document

    return convert([(_name(job), job) for job in jobs], read)


def _name(job: object) -> str:
    if isinstance(job, RqHash):
        return job.id
    return str(job.get("id", "")) if isinstance(job, Mapping) else f"{job!r:.60}"


def _times(
    name: str, meta: Mapping[str, Any], job: Mapping[str, Any], zone: str | None, remarks: Remarks
) -> dict[str, Any]:
    at = None if job.get("scheduled_at") is None else written_instant(instant_of(job["scheduled_at"]))
    if meta.get("cron_string"):
        if meta.get("use_local_timezone") and zone is None:
            raise ValueError("it uses the local time of its machine: name the zone with --tz")
        expression = _cron(str(meta["cron_string"]))
        if at is not None and not _plans(expression, zone or "UTC", at):
            _tell_other_times(
                name, f"its next time there is {at}, at which {expression!r} does not fire", zone, remarks
            )
        return {"cron": expression, **({} if zone in (None, "UTC") else {"timezone": zone})}
    if meta.get("interval"):
        # Without start_at, the intervals before its first time would count, too.
        first = {} if at is None else {"anchor": at, "start_at": at}
        return {"every": format_duration(timedelta(seconds=meta["interval"])), **first}
    if at is None:
        raise ValueError("it has neither cron_string, interval nor scheduled_at")
    return {"once": at}


def _cron(text: str) -> str:
    """Write an expression of 5 fields, 6 with the year, or 7 with seconds and the year; its days must both hold."""
    if text.startswith("@"):
        return text
    words = text.split()
    if not 5 <= len(words) <= 7:
        raise ValueError(f"its cron_string has {len(words)} fields instead of 5")
    seconds, words = (words[0], words[1:]) if len(words) == 7 else ("0", words)
    five = five_fields(*words[:5])
    return f"{seconds} {five} {words[5]}" if len(words) == 6 else five


def _plans(expression: str, zone: str, at: str) -> bool:
    return compiled(Rule(cron(expression, zone)), "").is_time(micros_at(instant_of(at)))


def _tell_other_times(name: str, fact: str, zone: str | None, remarks: Remarks) -> None:
    """Tell that a job's next time is none of its expression: rq-scheduler reads expressions in the time of its machine,
    whatever `use_local_timezone` says, and only that time shows which it is.
    """
    if zone is None:
        raise ValueError(f"{fact} in UTC: name the zone of its machine with --tz")
    remarks.of(name, f"{fact} in {zone}: compare the times")
