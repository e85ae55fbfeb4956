"""Compare a run with the job, options and payload values that a test expects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.core.runs.options import new_run
from rota.core.runs.run import NewRun, Run
from rota.errors import Invalid, did_you_mean
from rota.job import Job
from rota.testing.inline_mode.inline import InlineRun
from rota.values.instants import instant
from rota.values.scope import Scope, scope_text


def _first_due(run: Run) -> datetime:
    """Return when a run was first due. Once it has begun, `run_at` may be that of a later attempt: refuse."""
    if run.attempt > 0:
        raise Invalid(f"run {run.id} has begun: when it was due at first is not kept", hint="look before you drain")
    return run.run_at


_COMPARED: Mapping[str, tuple[Callable[[NewRun], Any], Callable[[Run], Any]]] = {
    "queue": (lambda new: new.queue, lambda run: run.queue),
    "priority": (lambda new: new.priority, lambda run: run.priority),
    "key": (lambda new: new.key, lambda run: run.key),
    "scope": (lambda new: Scope(new.scope_kind, new.scope_id), lambda run: run.scope),
    "max_attempts": (lambda new: new.max_attempts, lambda run: run.max_attempts),
    "tags": (lambda new: _decoded(new.tags, []), lambda run: list(run.tags)),
    "metadata": (lambda new: _decoded(new.metadata, {}), lambda run: run.metadata),
    "delay": (lambda new: timedelta(microseconds=new.delay), lambda run: _first_due(run) - run.created_at),
    "run_at": (lambda new: None if new.run_at is None else instant(new.run_at), _first_due),
}
"""Options that can be compared, each with its value in a new run and in a stored run."""


class RunMatcher:
    """Matcher made from a job, with or without options, and some values of its payload."""

    def __init__(self, job: Job[..., Any], values: Mapping[str, Any]) -> None:
        self.job = job
        self._values = {name: _plain(value) for name, value in values.items()}
        self._options = _wanted_options(job)
        _refuse_unknown(job, values)

    @property
    def words(self) -> str:
        parts = [f"{name}={value!r}" for name, value in self._values.items()]
        parts += [f"{name} {_shown(value)}" for name, value in self._options.items()]
        return f" with {', '.join(parts)}" if parts else ""

    def differences(self, run: Run | InlineRun) -> list[str]:
        if run.job != self.job.name:
            return [f"it is a run of {run.job!r}"]
        differences = []
        for name, value in self._values.items():
            if name not in run.payload:
                differences.append(f"{name} is not given, {value!r} was expected")
            elif value != run.payload[name]:  # the expected value's `!=` decides: it may be ANY
                differences.append(f"{name} is {run.payload[name]!r}, not {value!r}")
        for name, value in self._options.items():
            actual = _option_of(run, name)
            if not _covers(actual, value):
                differences.append(f"{name} is {_shown(actual)}, not {_shown(value)}")
        return differences


def _wanted_options(job: Job[..., Any]) -> dict[str, Any]:
    """Return the expected options as an enqueue would store them, without those that depend on the whole payload."""
    for name in job.given:
        if name not in _COMPARED:
            raise Invalid(f"{name} cannot be looked for", hint="these can: " + ", ".join(_COMPARED))
    simple = msgspec.structs.replace(job.handler.definition, limits=(), unique=None, repeatable=True)
    new = new_run(simple, "", "{}", {**job.given, "unique": False})
    return {name: _COMPARED[name][0](new) for name in job.given}


def _option_of(run: Run | InlineRun, name: str) -> Any:
    of_new, of_stored = _COMPARED[name]
    return of_new(run.made) if isinstance(run, InlineRun) else of_stored(run)


def _refuse_unknown(job: Job[..., Any], values: Mapping[str, Any]) -> None:
    """Refuse a misspelt name: it would never match, and `assert_not_enqueued` would always pass."""
    schema = job.handler.definition.payload_schema
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is False:
        for name in values:
            if name not in properties:
                hint = did_you_mean(name, properties) or "options are given as in an enqueue: job.options(…)"
                raise Invalid(f"the payload of {job.name!r} has no {name!r}", hint=hint)


def _covers(actual: Any, expected: Any) -> bool:
    """Return whether `actual` matches; of tags and metadata a subset is enough."""
    match expected:
        case list():
            return set(expected) <= set(actual)
        case dict():
            return all(name in actual and actual[name] == value for name, value in expected.items())
        case _:
            return bool(actual == expected)


def _shown(value: Any) -> str:
    match value:
        case Scope():
            return scope_text(value)
        case timedelta() | datetime():
            return str(value)
        case _:
            return repr(value)


def _plain(value: Any) -> Any:
    """Return `value` as it is in a payload. What JSON cannot represent stays as it is, with its own `==`."""
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        return value


def _decoded(text: str | None, otherwise: Any) -> Any:
    return msgspec.json.decode(text) if text else otherwise
