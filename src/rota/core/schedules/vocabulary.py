"""Words of other schedulers, translated to rota's at every door: REST, the command line, files and Python.

docs/coming-from/vocabularies.md has the tables. A word without a counterpart is refused with a hint what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rota.core.limits.limits import WhenFull
from rota.core.schedules.policies import FailureMode
from rota.errors import Invalid, did_you_mean

_CATCH_UP = {"fire_now": "all", "skip": "none", "catch_up_limited": "all"}
_OVERLAP = {"allow": "allow", "skip": "skip", "cancel_prev": "cancel_previous", "parallel": "parallel"}
_FAILURE = {mode.value: mode.value for mode in (FailureMode.RUN_NEW, FailureMode.SKIP, FailureMode.RETRY)}
_WHEN_FULL = {mode.value: mode.value for mode in (WhenFull.SKIP, WhenFull.QUEUE)}
_LIMITED = "catch_up_limited"
_OF_SCHEDULE = (
    "interval_minutes", "interval_type", "anchor", "cron_expr", "misfire_policy", "catchup_limit", "overlap_action",
    "failure_action", "concurrency_policy",
)  # fmt: skip
WITHOUT_COUNTERPART = {
    "is_paused": "pause it: `rota schedule pause`, or `rota job pause`",
    "schedule_time": "write it as cron",
    "next_run_at": "rota computes it: next_plan",
    "stale_timeout": "the lease of the worker decides: ROTA_LEASE; on_lost says what follows",
    "lock_token": "rota has a fence for each claim, and needs none from you",
    "concurrent_worker_cnt": "write replicas",
    "specific_worker_ids": "write only_workers",
    "source_id": "write it into the payload",
}
"""Words that rota knows, and has nothing of its own for, each with what to do instead."""

Word = Callable[[str, Any], Any]


def translated(document: Mapping[str, Any], where: str = "a schedule") -> dict[str, Any]:
    """Return a schedule's document, or the options of a job, in rota's words."""
    words = {key: value for key, value in document.items() if key not in _TRANSLATED and key != "catchup_limit"}
    for key, (own, read) in _TRANSLATED.items():
        if document.get(key) is None:
            continue
        if words.get(own) is not None:
            raise Invalid(f"{where}: {key} and {own} exclude each other", hint="give one of them")
        words[own] = read(key, document[key])
    if document.get("catchup_limit") is not None:
        if str(document.get("misfire_policy")).lower() != _LIMITED:
            raise Invalid(f"{where}: catchup_limit needs misfire_policy CATCH_UP_LIMITED", hint='catch_up: {"keep": 3}')
        words["catch_up"] = {"mode": "all", "keep": _number("catchup_limit", document["catchup_limit"])}
    for key in words:
        if key in WITHOUT_COUNTERPART:
            raise Invalid(f"{where}: rota has no {key}", hint=WITHOUT_COUNTERPART[key])
    return words


def translated_job(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a new job in rota's words: what is about its schedule goes to `schedule`.

    `schedule_enabled` false without a schedule means one run, now. `payload` is for the schedule or that run.
    """
    words = {"name": document["source_name"], **document} if document.get("source_name") else dict(document)
    words.pop("source_name", None)
    of_schedule = {key: words.pop(key) for key in _OF_SCHEDULE if key in words}
    of_schedule = {key: value for key, value in of_schedule.items() if value is not None}
    enabled, payload = words.pop("schedule_enabled", None), words.pop("payload", None)
    schedule = words.get("schedule")
    if schedule is not None and of_schedule:
        raise Invalid(f"schedule and {next(iter(of_schedule))} exclude each other", hint="give one of them")
    if schedule is None and not of_schedule:
        if enabled:
            raise Invalid("schedule_enabled needs a schedule", hint="give interval_minutes, or a schedule")
        if enabled is False:
            words["run"] = payload or {}
        elif payload is not None:
            raise Invalid("a payload needs a schedule or a run", hint="give a schedule, or run: {…}")
        return translated(words, "a job")
    if schedule is None or isinstance(schedule, Mapping):
        overrides = {"payload": payload, "enabled": enabled}
        given = {name: value for name, value in overrides.items() if value is not None}
        words["schedule"] = {**(schedule or translated(of_schedule)), **given}
    return translated(words, "a job")


def translated_changes(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of a job in rota's words. Its schedule is changed separately."""
    for key in (*_OF_SCHEDULE, "schedule_enabled"):
        if key in document:
            raise Invalid(f"{key} belongs to the job's schedule", hint="change that: `rota schedule update`")
    return translated(document, "a job")


def _word(words: Mapping[str, str]) -> Word:
    def read(key: str, value: Any) -> str:
        word = value.lower() if isinstance(value, str) else value
        if word not in words:
            known = [name.upper() for name in words]
            raise Invalid(f"{key} cannot be {value!r:.80}", hint=did_you_mean(str(value).upper(), known))
        return words[word]

    return read


def _number(key: str, value: Any, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 1_000_000:
        raise Invalid(f"{key} must be a whole number from {least} up, not {value!r:.80}")
    return value


_TRANSLATED: dict[str, tuple[str, Word]] = {
    "cron_expr": ("cron", lambda _, value: value),
    "misfire_policy": ("catch_up", _word(_CATCH_UP)),
    "overlap_action": ("overlap", _word(_OVERLAP)),
    "failure_action": ("failure", _word(_FAILURE)),
    "concurrency_policy": ("when_full", _word(_WHEN_FULL)),
    "timeout_seconds": ("timeout", lambda key, value: f"{_number(key, value)}s"),
    "max_retries": ("max_attempts", lambda key, value: _number(key, value, 0) + 1),
    "retry_backoff_seconds": ("backoff", lambda key, value: {"base": f"{_number(key, value)}s"}),
}
"""Words, each with rota's own and how its value is read."""
