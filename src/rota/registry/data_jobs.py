"""Data jobs: declared by their options alone, with a schema for the payload instead of a function."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, TypedDict, assert_never

import msgspec

from rota.core.jobs import http
from rota.core.jobs.command import COMMAND_OPTIONS, command_of
from rota.core.jobs.http import HTTP_OPTIONS, StatusOption, request_of
from rota.core.jobs.job import DataKind, Isolation, JobDefinition, JobKind, data_kind, kind_of
from rota.core.jobs.pipelines import PLACE, Part, parts_of
from rota.core.jobs.placeholders import payload_names
from rota.core.jobs.unique import on_conflict_of, replaces
from rota.core.progress.steps import StepDefinition, StepOption
from rota.core.workers.requirements import REQUIREMENT_OPTIONS
from rota.errors import BadPayload, Invalid, RotaError, UnknownOption, did_you_mean
from rota.registry.jobs import JOB_OPTIONS, JobOptions, SharedOptions, defined
from rota.registry.process_limits import cpu_limit, memory_limit
from rota.registry.signature import PayloadType, check_schema
from rota.values.durations import Duration
from rota.values.json import Limits
from rota.values.json import encode as encode_json
from rota.values.sizes import Size

_PROCESS_LIMITS = ("cpu_limit", "memory_limit")
_OF_ITS_PARTS = ("isolation", *_PROCESS_LIMITS, "local_retries", "steps", "replicas", "retry_on", "no_retry_on")
DATA_KINDS = tuple(kind for kind in map(data_kind, JobKind) if kind is not None)
KINDS = tuple(kind.value for kind in DATA_KINDS)
_OF_FUNCTIONS = ("name", "isolation", "cpu_limit", "memory_limit", "local_retries")
_ONLY_IN_CODE = ("version", "notify", "schedule")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
DATA_OPTIONS = (
    *(option for option in JOB_OPTIONS if option not in ("steps", *_OF_FUNCTIONS, *_ONLY_IN_CODE)),
    "payload_schema",
)


class DataOptions(JobOptions, total=False):
    """Options that every data job accepts."""

    payload_schema: dict[str, Any]


class HttpSettings(TypedDict, total=False):
    """Options of HTTP jobs alone."""

    url: str
    method: str
    headers: dict[str, str]
    body: Any
    expect_status: StatusOption
    retry_on: StatusOption
    redirects: bool
    max_response: Size
    secret: str


class HttpOptions(DataOptions, HttpSettings, total=False):
    """Options that `app.http_job(...)` accepts."""


class CommandSettings(TypedDict, total=False):
    """Options of command jobs alone, beside their `argv`."""

    env: dict[str, str]
    cwd: str
    stdin: str
    retry_exit_codes: list[int]
    cpu_limit: Duration
    memory_limit: Size


class CommandOptions(DataOptions, CommandSettings, total=False):
    """Options that `app.command_job(...)` accepts."""


class JobChanges(SharedOptions, HttpSettings, CommandSettings, total=False):
    """Options of data jobs of any kind."""

    argv: list[str]
    steps: list[StepOption]
    pipeline: list[dict[str, Any]]
    payload_schema: dict[str, Any]


class SchemaPayload(PayloadType):
    """Payloads validated by a JSON Schema; the handler gets the JSON text."""

    __slots__ = ("_schema",)

    def __init__(self, schema: dict[str, Any]) -> None:
        super().__init__((), wants_context=None, rest=None)
        self._schema = schema

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        if args:
            raise BadPayload("$", f"takes no positional arguments, {len(args)} were given", hint="give them by name")
        return dict(kwargs)

    def encode(self, arguments: dict[str, object], limits: Limits) -> str:
        text = encode_json(arguments, limits)
        check_schema(self._schema, text, limits)
        return text

    def arguments(self, text: str | bytes) -> dict[str, object]:
        return {"payload": text if isinstance(text, str) else text.decode()}

    def schema(self) -> dict[str, object]:
        return self._schema


def checked_kind(word: str) -> DataKind:
    """Return the kind of data job that a caller names."""
    named = kind_of(str(word))
    kind = None if named is None else data_kind(named)
    if kind is None:
        raise Invalid(f"a job cannot be of kind {word!r:.80}", hint=did_you_mean(str(word), KINDS))
    return kind


def kind_options(kind: DataKind) -> tuple[str, ...]:
    """Return the options that only data jobs of this kind have."""
    match kind:
        case JobKind.HTTP:
            return HTTP_OPTIONS
        case JobKind.COMMAND:
            return (*COMMAND_OPTIONS, *_PROCESS_LIMITS)
        case JobKind.EXTERNAL:
            return ("steps",)
        case JobKind.PIPELINE:
            return ("pipeline",)
        case _:
            assert_never(kind)


def define_data_job(
    name: str, kind: str, options: Mapping[str, Any], *, version: int = 1, in_code: bool = False
) -> JobDefinition:
    """Validate a data job; None counts as not given. `in_code`: options that only code may declare are accepted."""
    checked = checked_kind(kind)
    values = {option: value for option, value in options.items() if value is not None}
    more = ("version",) if in_code else ()
    allowed = (*kind_options(checked), *DATA_OPTIONS, *more)
    for option in values:
        if option not in allowed:
            raise UnknownOption(option, allowed, where=f"a job of kind {checked}")
    request, command = None, None
    match checked:
        case JobKind.HTTP:
            request = request_of(values)
            values.setdefault("timeout", http.TIMEOUT)
        case JobKind.COMMAND:
            command = command_of(values)
        case JobKind.EXTERNAL | JobKind.PIPELINE:
            pass
        case _:
            assert_never(checked)
    own: dict[str, Any] = {option: values[option] for option in ("steps", *DATA_OPTIONS, *more) if option in values}
    schema = own.pop("payload_schema", None)
    definition = defined(
        {"version": version, **own, "name": name},
        description=own.get("description", ""),
        payload_schema=_schema(request, command) if schema is None else _checked_schema(schema),
        kind=checked.value,
        http=request,
        command=command,
    )
    match checked:
        case JobKind.COMMAND:  # a program is a process of its own
            limits = {**values, "isolation": Isolation.PROCESS.value}
            return msgspec.structs.replace(definition, cpu_limit=cpu_limit(limits), memory_limit=memory_limit(limits))
        case JobKind.PIPELINE:
            return as_pipeline(definition, values.get("pipeline"), values)
        case JobKind.HTTP | JobKind.EXTERNAL:
            return definition
        case _:
            assert_never(checked)


def as_pipeline(definition: JobDefinition, items: object, options: Mapping[str, Any]) -> JobDefinition:
    """Return the definition as that of a pipeline: its payload must have the fields that the parts use."""
    name = definition.name
    for option in ("name", *_OF_ITS_PARTS):
        if option in options:
            raise Invalid(f"pipeline {name!r:.80} cannot have {option}", hint="declare it on the jobs of its parts")
    parts = parts_of(name, items)
    if definition.unique is not None and replaces(on_conflict_of(definition.unique.on_conflict)):
        raise Invalid("a pipeline cannot be replaced: parts of it may be done", hint='on_conflict="existing"')
    schema = definition.payload_schema if options.get("payload_schema") is not None else _schema_of_parts(parts)
    return msgspec.structs.replace(
        definition,
        kind=JobKind.PIPELINE.value,
        pipeline=parts,
        steps=tuple(StepDefinition(part.step, part.job) for part in parts),
        payload_schema=schema,
    )


def _schema_of_parts(parts: tuple[Part, ...]) -> dict[str, Any]:
    names = payload_names(*(part.payload for part in parts), place=PLACE)
    schema: dict[str, Any] = {"type": "object", "properties": {field: {} for field in names}}
    return schema | {"required": names} if names else schema


def checked_data_job(name: str, kind: str, options: Mapping[str, Any], *, version: int = 1) -> JobDefinition:
    """Validate a data job; errors name it."""
    try:
        return define_data_job(name, kind, options, version=version)
    except RotaError as error:
        raise error.within(f"job {name!r:.80}") from None


def _schema(*parts: msgspec.Struct | None) -> dict[str, Any]:
    """Return a schema of any object that has the fields which fill the job's placeholders."""
    names = payload_names(msgspec.to_builtins(parts))
    schema: dict[str, Any] = {"$schema": _DIALECT, "type": "object", "properties": {name: {} for name in names}}
    return schema | {"required": names} if names else schema


def _checked_schema(schema: object) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise Invalid(f"a payload_schema is a JSON Schema, as an object: not {schema!r:.80}")
    checked = dict(schema)
    encode_json(checked, Limits())
    with contextlib.suppress(BadPayload):  # an empty payload may not match: only the schema itself is checked
        check_schema(checked, "{}", Limits())
    return checked


def changed_options(definition: JobDefinition, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Apply `changes`; what is not given stays.

    `limit` replaces all limits, `max_concurrency` only the one of all runs.
    """
    options = options_of(definition)
    if "max_concurrency" in changes and "limit" not in changes:
        options["limit"] = [limit for limit in definition.limits if limit.by or limit.per is not None]
    return {**options, **changes}


def options_of(definition: JobDefinition) -> dict[str, Any]:
    """Return the options from which `define_data_job` builds the same definition."""
    same = (
        "queue",
        "priority",
        "timeout",
        "on_lost",
        "unique",
        "enabled",
        "repeatable",
        "schedulable",
        "description",
        "replicas",
        "expect",
    )
    options: dict[str, Any] = {option: getattr(definition, option) for option in same}
    options["max_attempts"] = definition.retry.max_attempts
    if not definition.retry.has_default_backoff:
        options["backoff"] = definition.retry.backoff
    options |= {"cancellable": definition.cancel.supported, "cancel_grace": definition.cancel.grace}
    options |= {"keep": definition.retention.keep, "keep_for": definition.retention.keep_for}
    options |= {"limit": list(definition.limits), "tags": definition.tags, "metadata": definition.metadata}
    options |= {name: getattr(definition.requirements, name) or None for name in REQUIREMENT_OPTIONS}
    if definition.pipeline:
        derived = definition.payload_schema == _schema_of_parts(definition.pipeline)
        own = {} if derived else {"payload_schema": definition.payload_schema}
        return {**options, "replicas": None, "pipeline": list(definition.pipeline), **own}
    if definition.steps:
        options["steps"] = list(definition.steps)
    if definition.command is not None:
        options |= {name: getattr(definition, name) for name in _PROCESS_LIMITS}
    parts = (definition.http, definition.command)
    for part in filter(None, parts):
        options |= {name: getattr(part, name) for name in part.__struct_fields__}
    if definition.payload_schema != _schema(*parts):  # it was given, not derived
        options["payload_schema"] = definition.payload_schema
    return options
