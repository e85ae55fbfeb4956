"""Request bodies that create or change data jobs, and their conversion to options."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from rota.api.http.rejection import BadBody
from rota.api.operations.enqueue_body import BackoffBody, UniqueBody
from rota.api.operations.request import LARGEST_BODY, given_fields
from rota.core.jobs.job import DataKind, JobKind
from rota.core.jobs.retry import Exponential
from rota.core.jobs.secrets import MASK
from rota.errors import Invalid
from rota.registry.data_jobs import DATA_KINDS, DATA_OPTIONS, checked_kind, kind_options
from rota.values.durations import parse_duration
from rota.values.json import Limits, encode

Text = str | None | UnsetType
Number = int | None | UnsetType
Switch = bool | None | UnsetType
Names = Annotated[list[str], msgspec.Meta(max_length=500)] | None | UnsetType
Texts = Annotated[dict[str, str], msgspec.Meta(max_length=500)] | None | UnsetType
Status = int | str
Statuses = Status | Annotated[list[Status], msgspec.Meta(max_length=500)] | None | UnsetType

_LIMITS = Limits(LARGEST_BODY)


class JobBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`kind` may be omitted if there is a `url` or an `argv`. `null` resets an option to its default.

    `max_retries` (one less than `max_attempts`) and `retry_backoff_seconds` (doubled after each attempt) are
    alternatives to `max_attempts` and `backoff`.
    """

    kind: Literal["http", "command", "external"] | UnsetType = UNSET
    url: str | UnsetType = UNSET
    method: Text = UNSET
    headers: Texts = UNSET
    body: Any = UNSET
    expect_status: Statuses = UNSET
    retry_on: Statuses = UNSET
    redirects: Switch = UNSET
    max_response: int | str | UnsetType | None = UNSET
    secret: Text = UNSET
    argv: Annotated[list[str], msgspec.Meta(min_length=1, max_length=500)] | UnsetType = UNSET
    env: Texts = UNSET
    cwd: Text = UNSET
    stdin: Text = UNSET
    retry_exit_codes: Annotated[list[int], msgspec.Meta(max_length=256)] | UnsetType | None = UNSET
    payload_schema: dict[str, Any] | UnsetType | None = UNSET
    queue: Text = UNSET
    priority: Number = UNSET
    max_attempts: Number = UNSET
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=1_000)] | UnsetType = UNSET
    backoff: str | Annotated[list[str], msgspec.Meta(max_length=500)] | BackoffBody | UnsetType | None = UNSET
    retry_backoff_seconds: Annotated[int, msgspec.Meta(ge=1, le=3_600)] | UnsetType = UNSET
    timeout: Text = UNSET
    on_lost: Text = UNSET
    cancellable: Switch = UNSET
    cancel_grace: Text = UNSET
    unique: bool | str | list[str] | UniqueBody | UnsetType | None = UNSET
    max_concurrency: Number = UNSET
    limit: dict[str, Any] | Annotated[list[dict[str, Any]], msgspec.Meta(max_length=20)] | UnsetType | None = UNSET
    """Most runs at a time with the same key, or several such limits."""
    only_workers: Names = UNSET
    labels: Names = UNSET
    min_worker_version: Text = UNSET
    replicas: int | str | dict[str, Any] | UnsetType | None = UNSET
    expect: dict[str, Any] | UnsetType | None = UNSET
    keep: Number = UNSET
    keep_for: Text = UNSET
    enabled: Switch = UNSET
    repeatable: Switch = UNSET
    schedulable: Switch = UNSET
    description: Text = UNSET
    tags: Names = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET


class NewJobBody(JobBody, kw_only=True):
    """`schedule` is a schedule's document without its job; it has the job's name unless it names its own.
    Alternatively, give an interval: `interval_minutes` counts `minutes`, `hours` or `days` (`interval_type`), with
    `schedule_enabled`. `schedule_enabled: false` without an interval means one run, now. `payload` is for the schedule
    or that run."""

    name: str
    schedule: dict[str, Any] | None = None
    """Document of the schedule that is created with the job."""
    interval_minutes: int | None = None
    interval_type: str | None = None
    schedule_enabled: bool | None = None
    payload: dict[str, Any] | None = None


_NOT_OPTIONS = ("kind", "max_retries", "retry_backoff_seconds", "name", "schedule", "schedule_enabled", "payload",
                "interval_minutes", "interval_type")  # fmt: skip


def kind_of(body: JobBody) -> str:
    """Return the job's kind, given or implied."""
    if body.kind is not UNSET:
        return body.kind
    kinds = [kind.value for kind in DATA_KINDS if _is_implied(kind, body)]
    if len(kinds) != 1:
        raise Invalid("the kind of the job is missing", hint="give a url, an argv, or kind: external")
    return kinds[0]


def _is_implied(kind: DataKind, body: JobBody) -> bool:
    match kind:
        case JobKind.HTTP:
            return body.url is not UNSET
        case JobKind.COMMAND:
            return body.argv is not UNSET
        case JobKind.EXTERNAL:
            return False
        case _:
            assert_never(kind)


def options_in(body: JobBody) -> dict[str, Any]:
    """Return the options as `client.data_jobs` takes them."""
    fields = given_fields(body)
    options = {name: _option(value) for name, value in fields.items() if name not in _NOT_OPTIONS}
    for alias, option, value in (
        ("max_retries", "max_attempts", lambda count: count + 1),
        ("retry_backoff_seconds", "backoff", lambda count: Exponential(timedelta(seconds=count))),
    ):
        if alias in fields:
            if option in options:
                raise Invalid(f"{alias} and {option} exclude each other", hint="give one of them")
            options[option] = value(fields[alias])
    for name, value in options.items():
        _refuse_masked(value, f"$.{name}")
        if isinstance(value, dict):
            encode(value, _LIMITS)
    return options


def all_options(kind: str) -> dict[str, None]:
    """Return every option, at its default."""
    return dict.fromkeys((*kind_options(checked_kind(kind)), *DATA_OPTIONS))


def schedule_in(body: NewJobBody) -> dict[str, Any] | None:
    """Return the document of the schedule that comes with the job, or None."""
    of_interval: dict[str, Any] = {}
    if body.interval_minutes is not None or body.interval_type is not None:
        of_interval = {"interval_minutes": body.interval_minutes, "interval_type": body.interval_type or "minutes"}
    if body.schedule is not None and of_interval:
        raise Invalid("schedule and interval_minutes exclude each other", hint="give one of them")
    if body.schedule is None and not of_interval:
        if body.schedule_enabled:
            raise Invalid("schedule_enabled needs a schedule", hint="give interval_minutes, or a schedule")
        return None
    document = {"name": body.name, **(body.schedule or of_interval)}
    if document.get("job", body.name) != body.name:
        raise BadBody("$.schedule.job", "must be the job itself")
    overrides = {"job": body.name, "payload": body.payload, "enabled": body.schedule_enabled}
    return {**document, **{name: value for name, value in overrides.items() if value is not None}}


def runs_at_once(body: NewJobBody) -> bool:
    """Return whether the job is to run once, now."""
    return body.schedule_enabled is False and schedule_in(body) is None


def _option(value: Any) -> Any:
    match value:
        case UniqueBody():
            return msgspec.to_builtins(value)
        case BackoffBody():
            base, cap = (parse_duration(getattr(value, part), f"backoff.{part}") for part in ("base", "cap"))
            return Exponential(base, value.factor, cap, value.jitter)
        case _:
            return value


def _refuse_masked(value: Any, path: str) -> None:
    """Refuse masked secrets, so that a redacted answer sent back does not overwrite the secret."""
    if isinstance(value, str) and (value == MASK or f"={MASK}" in value):
        raise BadBody(path, "is a masked secret", hint="send the secret itself; PATCH keeps omitted options")
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        _refuse_masked(item, f"{path}[{name!r}]")
