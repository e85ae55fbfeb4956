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
    "interval_minutes", "interval_type", "anchor", "schedule_time", "cron_expr", "misfire_policy", "catchup_limit",
    "overlap_action", "failure_action", "concurrency_policy",
)  # fmt: skip
WITHOUT_COUNTERPART = {
    "is_paused": "pause it: `rota schedule pause`, or `rota job pause`",
    "next_run_at": "rota computes it: next_plan",
    "stale_timeout": "the lease of the worker decides: ROTA_LEASE; on_lost says what follows",
    "lock_token": "rota has a fence for each claim, and needs none from you",
    "concurrent_worker_cnt": "write replicas",
    "specific_worker_ids": "write only_workers",
    "lock_acquired_at": "rota has a lease for each claim: `rota run attempts`",
    "current_retry_count": "rota counts the attempts of each run: attempt",
}
"""Words that rota knows, and has nothing of its own for, each with what to do instead."""

Word = Callable[[str, Any], Any]


def translated(document: Mapping[str, Any], where: str = "a schedule") -> dict[str, Any]:
    """Return a schedule's document, or the options of a job, in rota's words."""
    document = _unfolded(document, where)
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
    words = _with_metadata({"name": document["source_name"], **document} if document.get("source_name") else document)
    words.pop("source_name", None)
    if words.get("interval_minutes") is not None:  # the newer of the two: it stands over the older cron field
        words.pop("schedule_time", None)
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
    if document.get("source_name") is not None:
        raise Invalid("source_name is the job's name, which does not change", hint="create another job")
    return translated(_with_metadata(document), "a job")


def _with_metadata(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with words that only callers understand among the job's metadata."""
    words = {key: value for key, value in document.items() if key not in _METADATA}
    kept = {key: document[key] for key in _METADATA if document.get(key) is not None}
    if not kept:
        return words
    metadata = words.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise Invalid("metadata must be an object")
    return {**words, "metadata": {**kept, **metadata}}


def _unfolded(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the document with what is inside of a policy beside the other options."""
    words = dict(document)
    for policy, names in _POLICIES.items():
        inside = words.pop(policy, None)
        if inside is None:
            continue
        if not isinstance(inside, Mapping):
            raise Invalid(f"{where}: {policy} must be an object", hint=f"known: {', '.join(names)}")
        for name, value in inside.items():
            if name not in names:
                raise Invalid(f"{where}: {policy} has no {name!r:.80}", hint=did_you_mean(str(name), names))
            if names[name] is not None:
                words[str(names[name])] = value
            elif value != "cooperative":
                hint = "a handler is asked to stop, and its run ends when cancel_grace is over"
                raise Invalid(f"{where}: {name} of {policy} cannot be {value!r:.80}", hint=hint)
    return words


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


def _delays(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return [f"{_number(key, seconds)}s" for seconds in value]
    return {"base": f"{_number(key, value)}s"}


def _fields(key: str, value: Any) -> list[str]:
    """Read the fields that make a run unique; the scope always counts, and needs no name."""
    if not isinstance(value, list) or not all(isinstance(field, str) for field in value):
        raise Invalid(f"{key} must be a list of names, not {value!r:.80}")
    return [field for field in value if field not in ("scope", "scope_id", "scopeId")]


def _same_scope(key: str, value: Any) -> dict[str, Any]:
    mode = _word({f"{mode}_same_scope": mode.value for mode in (WhenFull.REJECT, WhenFull.QUEUE, WhenFull.SKIP)})(
        key, value
    )
    return {"max": 1, "by": "scope", "when_full": mode}


_METADATA = ("source_id",)
"""Words that mean nothing to rota, and are kept for the caller."""
_POLICIES: dict[str, dict[str, str | None]] = {
    "retryPolicy": {"maxAttempts": "maxAttempts", "backoffSeconds": "backoffSeconds"},
    "cancelPolicy": {"supported": "cancellable", "graceSeconds": "graceSeconds", "mode": None},
}
"""Objects of options, whose content rota has beside the others; None: there is one value only."""
_TRANSLATED: dict[str, tuple[str, Word]] = {
    "cron_expr": ("cron", lambda _, value: value),
    "schedule_time": ("cron", lambda _, value: value),
    "misfire_policy": ("catch_up", _word(_CATCH_UP)),
    "overlap_action": ("overlap", _word(_OVERLAP)),
    "failure_action": ("failure", _word(_FAILURE)),
    "concurrency_policy": ("when_full", _word(_WHEN_FULL)),
    "timeout_seconds": ("timeout", lambda key, value: f"{_number(key, value)}s"),
    "timeoutSeconds": ("timeout", lambda key, value: f"{_number(key, value)}s"),
    "maxAttempts": ("max_attempts", _number),
    "backoffSeconds": ("backoff", _delays),
    "graceSeconds": ("cancel_grace", lambda key, value: f"{_number(key, value)}s"),
    "dedupeKeys": ("unique", _fields),
    "concurrencyPolicy": ("limit", _same_scope),
    "payloadTemplate": ("payload", lambda _, value: value),
    "templateType": ("job", lambda _, value: value),
    "max_retries": ("max_attempts", lambda key, value: _number(key, value, 0) + 1),
    "retry_backoff_seconds": ("backoff", _delays),
}
"""Words, each with rota's own and how its value is read."""
