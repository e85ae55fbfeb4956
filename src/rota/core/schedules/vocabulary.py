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
    document = _unfolded(_of_stored_schedule(document), where)
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
    if isinstance(words.get("steps"), list):
        words["steps"] = [_step(step) for step in words["steps"]]
    for key in words:
        if key in WITHOUT_COUNTERPART:
            raise Invalid(f"{where}: rota has no {key}", hint=WITHOUT_COUNTERPART[key])
    return words


def translated_job(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a new job in rota's words: what is about its schedule goes to `schedule`.

    `schedule_enabled` false without a schedule means one run, now. `payload` is for the schedule or that run.
    """
    document = _of_template(document)
    words = {"name": document["source_name"], **document} if document.get("source_name") else dict(document)
    words.pop("source_name", None)
    words, schedule = _split(words)
    if schedule is not None and not {"payload", "enabled"}.issuperset(schedule):
        words["schedule"] = schedule
    elif schedule is not None and words.get("schedule") is None:
        if schedule.get("enabled"):
            raise Invalid("schedule_enabled needs a schedule", hint="give interval_minutes, or a schedule")
        if "enabled" not in schedule:
            raise Invalid("a payload needs a schedule or a run", hint="give a schedule, or run: {…}")
        words["run"] = schedule.get("payload") or {}
    return translated(words, "a job")


def translated_changes(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of a job in rota's words: what is about its own schedule goes to `schedule`.

    `source_name`, which is the job's name, stays: only the caller knows that name.
    """
    words, schedule = _split(document)
    if schedule is not None:
        words["schedule"] = schedule
    return translated(words, "a job")


def _split(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the words of a job, and those of its schedule, if there are any."""
    words = _with_metadata(document)
    if words.get("interval_minutes") is not None:  # the newer of the two: it stands over the older cron field
        words.pop("schedule_time", None)
    of_schedule = {key: words.pop(key) for key in _OF_SCHEDULE if key in words}
    of_schedule = {key: value for key, value in of_schedule.items() if value is not None}
    beside = {"payload": words.pop("payload", None), "enabled": words.pop("schedule_enabled", None)}
    given = {name: value for name, value in beside.items() if value is not None}
    schedule = words.get("schedule")
    if schedule is None:
        return words, {**translated(of_schedule), **given} if of_schedule or given else None
    if of_schedule:
        raise Invalid(f"schedule and {next(iter(of_schedule))} exclude each other", hint="give one of them")
    return words, {**schedule, **given} if isinstance(schedule, Mapping) else None


def _of_template(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a job template, which has a `type`, as the document of a job of that name.

    Its `name` is one for people, and kept as metadata. Its work is done by external workers, unless it says otherwise.
    """
    if not isinstance(document.get("type"), str):
        return document
    words = {key: value for key, value in document.items() if key not in ("type", "version", "name", *_BY_DATABASE)}
    words["name"] = document["type"]
    if document.get("name") not in (None, document["type"]):
        words["metadata"] = {"name": document["name"], **(words.get("metadata") or {})}
    if not any(key in words for key in ("kind", "url", "argv", "pipeline")):
        words["kind"] = "external"
    return words


def _step(step: Any) -> Any:
    """Return a step in rota's words. One worker does all steps of a run; parts of a pipeline may be for others."""
    if not isinstance(step, Mapping):
        return step
    words = {key: value for key, value in step.items() if key not in ("workerType", "timeoutSeconds")}
    if step.get("timeoutSeconds") is not None:
        words["timeout"] = f"{_number('timeoutSeconds', step['timeoutSeconds'])}s"
    return words


def _of_stored_schedule(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schedule of a template, which names it by `templateType`, with a name and its scope in rota's form."""
    if document.get("templateType") is None:
        return document
    words = {key: value for key, value in document.items() if key not in ("scope", "scopeId", *_BY_DATABASE)}
    kind, id = document.get("scope"), document.get("scopeId")
    if not (isinstance(kind, str) and isinstance(id, str)):
        return words
    return {"name": f"{document['templateType']}-{id}", "scopes": [[kind, id]], **words}


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


_BY_DATABASE = ("_id", "createAt", "updateAt", "lastRunAt", "nextRunAt")
"""Fields of stored templates and schedules that rota's database has of its own."""
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
