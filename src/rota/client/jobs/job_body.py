"""Bodies that create or change data jobs: their shape on the wire, and how they become options and back.

Routes and remote clients share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, assert_never

import msgspec
from msgspec import UNSET, Meta, UnsetType

from rota.core.jobs.job import DataKind, JobKind
from rota.core.jobs.retry import Delays, Exponential, backoff_of, written_backoff
from rota.core.schedules.vocabulary import translated_changes, translated_job
from rota.errors import BadPayload, Invalid
from rota.registry.data_jobs import DATA_KINDS, KINDS
from rota.values.durations import parse_duration, worded
from rota.values.json import Limits, encode
from rota.verbs.wire import Body

Many = Meta(max_length=500)
Text = str | None | UnsetType
Number = int | None | UnsetType
Switch = bool | None | UnsetType
Names = Annotated[list[str], Many] | None | UnsetType
Texts = Annotated[dict[str, str], Many] | None | UnsetType
Facts = dict[str, Any] | None | UnsetType
Status = int | str
Statuses = Status | Annotated[list[Status], Many] | None | UnsetType

_LIMITS = Limits(1_048_576)


class UniqueBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Uniqueness of a run."""

    fields: list[str] = []
    period: str | None = None
    on_conflict: str = "existing"
    clear: list[str] = []


class BackoffBody(msgspec.Struct, forbid_unknown_fields=True, tag="exponential"):
    """Exponential backoff between attempts."""

    base: str = "60s"
    factor: Annotated[float, Meta(ge=1, le=100)] = 2.0
    cap: str = "1h"
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.1


class JobBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """`kind` may be omitted if there is a `url`, an `argv` or a `pipeline`. `null` resets an option to its default.

    Words of other schedulers are translated: `max_retries`, `retry_backoff_seconds`, `timeout_seconds`.
    """

    kind: Annotated[str, Meta(extra_json_schema={"enum": list(KINDS)})] | UnsetType = UNSET
    url: Text = UNSET
    method: Text = UNSET
    headers: Texts = UNSET
    body: Any = UNSET
    expect_status: Statuses = UNSET
    retry_on: Statuses = UNSET
    redirects: Switch = UNSET
    max_response: int | str | UnsetType | None = UNSET
    secret: Text = UNSET
    argv: Annotated[list[str], Meta(min_length=1, max_length=500)] | UnsetType | None = UNSET
    env: Texts = UNSET
    cwd: Text = UNSET
    stdin: Text = UNSET
    retry_exit_codes: Annotated[list[int], Meta(max_length=256)] | UnsetType | None = UNSET
    cpu_limit: Text = UNSET
    memory_limit: int | str | UnsetType | None = UNSET
    steps: Annotated[list[str | dict[str, Any]], Meta(max_length=1_000)] | UnsetType | None = UNSET
    pipeline: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=100)] | UnsetType | None = UNSET
    """Parts of a pipeline: a `step` and a `job` each, and the `payload` of that job."""
    payload_schema: Facts = UNSET
    queue: Text = UNSET
    priority: Number = UNSET
    max_attempts: Number = UNSET
    backoff: str | Annotated[list[str], Many] | BackoffBody | UnsetType | None = UNSET
    timeout: Text = UNSET
    on_lost: Text = UNSET
    cancellable: Switch = UNSET
    cancel_grace: Text = UNSET
    unique: bool | str | list[str] | UniqueBody | UnsetType | None = UNSET
    max_concurrency: Number = UNSET
    limit: dict[str, Any] | Annotated[list[dict[str, Any]], Meta(max_length=20)] | UnsetType | None = UNSET
    """Most runs at a time with the same key, or several such limits."""
    only_workers: Names = UNSET
    labels: Names = UNSET
    min_worker_version: Text = UNSET
    replicas: int | str | dict[str, Any] | UnsetType | None = UNSET
    expect: Facts = UNSET
    keep: Number = UNSET
    keep_for: Text = UNSET
    enabled: Switch = UNSET
    repeatable: Switch = UNSET
    schedulable: Switch = UNSET
    description: Text = UNSET
    tags: Names = UNSET
    metadata: Facts = UNSET


class NewJobBody(JobBody, kw_only=True):
    """`schedule` is a schedule's document without its job; it has the job's name unless it names its own.

    Words of other schedulers are translated: `interval_minutes` with `interval_type`, `cron_expr` and others become a
    schedule, with `schedule_enabled` and its `payload`; `schedule_enabled: false` alone means one run, now.
    """

    name: str
    schedule: dict[str, Any] | None = None
    """Document of the schedule that is created with the job."""
    run: Annotated[dict[str, Any], Meta(description="Payload of a run that is enqueued with the job")] | None = None


class ChangedJobBody(JobBody, kw_only=True):
    """`schedule` has the parts that change of the schedule that belongs to the job; a job without one gets it.

    Words of other schedulers are translated as those of a new job: `interval_minutes`, `cron_expr`, `schedule_enabled`
    and others are about its schedule. `source_name` may only repeat the job's name.
    """

    schedule: dict[str, Any] | None = None
    """Changes of the job's own schedule."""


_NOT_OPTIONS = ("kind", "name", "schedule", "run")


def implied_kind(options: Mapping[str, Any]) -> str:
    """Return the kind of a job that the options imply."""
    kinds = [kind.value for kind in DATA_KINDS if _is_implied(kind, options)]
    if len(kinds) != 1:
        raise Invalid("the kind of the job is missing", hint="give a url, an argv, a pipeline, or kind: external")
    return kinds[0]


def _is_implied(kind: DataKind, options: Mapping[str, Any]) -> bool:
    match kind:
        case JobKind.HTTP:
            return options.get("url") is not None
        case JobKind.COMMAND:
            return options.get("argv") is not None
        case JobKind.PIPELINE:
            return options.get("pipeline") is not None
        case JobKind.EXTERNAL:
            return False
        case _:
            assert_never(kind)


def _options_in(body: JobBody) -> dict[str, Any]:
    fields = {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}
    options = {name: option_of(value) for name, value in fields.items() if name not in _NOT_OPTIONS}
    for value in options.values():
        if isinstance(value, dict):
            encode(value, _LIMITS)
    return options


def option_of(value: Any) -> Any:
    """Return an option of a job or a run as Python takes it."""
    match value:
        case UniqueBody():
            return msgspec.to_builtins(value)
        case BackoffBody():
            base, cap = (parse_duration(getattr(value, part), f"backoff.{part}") for part in ("base", "cap"))
            return Exponential(base, value.factor, cap, value.jitter)
        case _:
            return value


def _changes_in(body: JobBody, _: Mapping[str, Any]) -> dict[str, Any]:
    kind = {} if body.kind is UNSET else {"kind": body.kind}
    return {**kind, **_options_in(body)}


def _changed_in(body: ChangedJobBody, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"schedule": body.schedule, **_changes_in(body, {})}


def _new_job_in(body: NewJobBody, _: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": body.name, "schedule": body.schedule, "run": body.run, **_changes_in(body, {})}


def _written(arguments: Mapping[str, Any], _: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as JSON has them."""
    written = {name: value for name, value in worded(dict(arguments)).items() if value is not None or name != "kind"}
    backoff = arguments.get("backoff")
    if isinstance(backoff, Exponential | Delays | Mapping):
        plain = written_backoff(backoff_of(backoff))
        written["backoff"] = {"type": "exponential", **plain} if isinstance(plain, dict) else plain
    return written


def payload_place(_: BadPayload, body: Any) -> str:
    if body.get("payload") is not None:
        return "$.payload"
    return "$.schedule.payload" if body.get("schedule") is not None else "$.run"


NEW_JOB = Body(NewJobBody, _written, _new_job_in, translate=translated_job, others=True)
CHANGES = Body(ChangedJobBody, _written, _changed_in, translate=translated_changes, others=True)
