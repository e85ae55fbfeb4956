"""Build a `NewRun` from a job definition and enqueue options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

import msgspec

from rota.core.jobs.job import MAX_PRIORITY, MIN_PRIORITY, JobDefinition
from rota.core.jobs.pipelines import Pipeline
from rota.core.jobs.retry import Backoff, RetryPolicy, retry_policy_in
from rota.core.jobs.unique import (
    KeyHold,
    PartKey,
    Unique,
    checked_mode,
    fingerprint,
    fingerprint_with,
    idempotency_key,
    on_conflict_of,
    once_key,
    replaces,
    unique_fields,
    unique_key,
)
from rota.core.limits.limits import Gate, gate_of, narrowest_first, rate_prefixes
from rota.core.runs.dependencies import AfterOption, Dependency, checked_ref, followed_by
from rota.core.runs.payload import InputOption, pending_of, require_free, require_known
from rota.core.runs.run import NewRun, Overrides
from rota.core.workers.replicas import require_workers
from rota.core.workers.requirements import Eligibility, Requirements, merged, requirements_of
from rota.errors import Invalid, JobDisabled, UnknownOption, did_you_mean
from rota.values import json
from rota.values.durations import Duration, format_duration, in_micros, parse_duration
from rota.values.instants import micros_at
from rota.values.json import Limits
from rota.values.names import checked_name, checked_timeout
from rota.values.scope import GLOBAL, Scope

_IDEMPOTENCY_MICROS = in_micros(timedelta(hours=24))
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


class RunOptions(TypedDict, total=False):
    """Options that `.options(...)` accepts."""

    queue: str
    priority: int
    delay: Duration
    run_at: datetime
    key: str
    scope: Scope | tuple[str, str]
    unique: UniqueOption
    max_attempts: int
    backoff: Backoff | Duration | list[Duration]
    timeout: Duration
    tags: list[str] | tuple[str, ...]
    metadata: dict[str, Any]
    idempotency_key: str
    after: AfterOption
    inputs: InputOption
    ref: str
    only_workers: list[str] | tuple[str, ...]
    labels: list[str] | tuple[str, ...]
    min_worker_version: str


UniqueOption = bool | str | list[str] | tuple[str, ...] | dict[str, Any] | Unique | None

RUN_OPTIONS = tuple(RunOptions.__annotations__)


def new_run(
    definition: JobDefinition, id: str, payload: str, options: Mapping[str, Any], within: Scope | None = None
) -> NewRun:
    """Build a run. `payload` is validated JSON text; `within` is the caller's scope, if it is restricted to one."""
    for option in options:
        if option not in RUN_OPTIONS:
            raise UnknownOption(option, RUN_OPTIONS, where=f"a run of {definition.name!r}")
    if not definition.enabled:
        raise JobDisabled(definition.name)
    scope = scope_of(options.get("scope"))
    key = checked_name(options["key"], "key") if options.get("key") is not None else None
    policy = _retry_override(definition, options)
    holds = key_holds(definition, scope, key, payload, options, within)
    pending = pending_of(options)
    if pending:
        require_free(pending, payload, definition.payload_schema, definition.name)
        require_known(
            pending, [field for limit in definition.limits for field in limit.fields], "a limit", definition.name
        )
    return NewRun(
        id=id,
        job=definition.name,
        job_version=definition.version,
        queue=checked_name(options.get("queue", definition.queue), "queue"),
        priority=checked_priority(options.get("priority", definition.priority)),
        scope_kind=scope.kind,
        scope_id=scope.id,
        key=key,
        payload=payload,
        tags=_json(_tags(options.get("tags", definition.tags))),
        metadata=_metadata(options.get("metadata", definition.metadata)),
        overrides=_overrides(definition, policy, options),
        max_attempts=(policy or definition.retry).max_attempts,
        on_lost=definition.on_lost,
        run_at=_run_at(options),
        delay=in_micros(parse_duration(options.get("delay", timedelta(0)), "delay")),
        holds=holds,
        gates=gates_of(definition, scope, payload),
        after=_after(options, holds),
        eligibility=eligibility_of(definition, requirements_of(options)),
        pipeline=Pipeline(definition.pipeline, options.get("queue")) if definition.pipeline else None,
    )


def _after(options: Mapping[str, Any], holds: Iterable[KeyHold]) -> tuple[Dependency, ...]:
    if options.get("ref") is not None:
        checked_ref(options["ref"])
    after = followed_by(options.get("after"), options.get("inputs"))
    if after and any(replaces(hold.on_conflict) for hold in holds):
        raise Invalid(
            "a run that follows others cannot replace another run",
            hint='unique={"on_conflict": "existing"}, or "reject"',
        )
    return after


def eligibility_of(definition: JobDefinition, own: Requirements) -> Eligibility | None:
    """Merge the requirements given for this run (`own`) with those of its job; None if any worker may have it."""
    requirements = merged(own, definition.requirements) if own else definition.requirements
    conducts = definition.replicas is not None
    require_workers(definition.replicas, own.only_workers)
    return Eligibility(requirements, conducts) if requirements or conducts else None


def carrying(run: NewRun, traceparent: str | None) -> NewRun:
    """Return the run with `traceparent` in its metadata, unless the caller set one."""
    if traceparent is None:
        return run
    metadata: dict[str, Any] = msgspec.json.decode(run.metadata) if run.metadata else {}
    return msgspec.structs.replace(run, metadata=_json({"traceparent": traceparent, **metadata}), like=None)


def _retry_override(definition: JobDefinition, options: Mapping[str, Any]) -> RetryPolicy | None:
    if "max_attempts" not in options and "backoff" not in options:
        return None
    return retry_policy_in(options, definition.retry)


def _overrides(definition: JobDefinition, policy: RetryPolicy | None, options: Mapping[str, Any]) -> str | None:
    timeout = options.get("timeout")
    if definition.pipeline:  # workers know the jobs of its parts, not the pipeline's policies
        policy, timeout = policy or definition.retry, timeout or definition.timeout
    overrides = Overrides(
        retry=policy,
        timeout=None if timeout is None else checked_timeout(timeout),
        unique=False if options.get("unique") is False else unique_of(options.get("unique")),
        requirements=requirements_of(options) or None,
        pipeline=True if definition.pipeline else None,
    )
    return None if overrides == Overrides() else _json(overrides)


def _run_at(options: Mapping[str, Any]) -> int | None:
    at = options.get("run_at")
    if at is None:
        return None
    if "delay" in options:
        raise Invalid("give delay or run_at, not both")
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise Invalid(f"run_at must be a datetime with a zone, not {at!r}", hint="datetime.now(UTC) + …")
    if not _EARLIEST <= at < _LATEST:
        raise Invalid(f"run_at must be between {_EARLIEST:%Y} and {_LATEST:%Y}, not {at}")
    return micros_at(at)


def key_holds(
    definition: JobDefinition,
    scope: Scope,
    key: str | None,
    payload: str,
    options: Mapping[str, Any],
    within: Scope | None = None,
) -> tuple[KeyHold, ...]:
    """Return the keys that a new run holds: idempotency key, `repeatable=False`, its key, and what is unique in it."""
    return hold_maker(definition, scope, key, options, within)(payload, options.get("idempotency_key"))


HoldMaker = Callable[[str, str | PartKey | None], tuple[KeyHold, ...]]
"""Makes the keys of a run from its payload and its idempotency key."""


def hold_maker(
    definition: JobDefinition,
    scope: Scope,
    key: str | None,
    options: Mapping[str, Any],
    within: Scope | None = None,
) -> HoldMaker:
    """Return what makes the keys of runs that have these options, but for the idempotency key."""
    content: Callable[[object], str] | None = None  # of the last number of parts: mostly there is but one
    parts = 0
    fixed = [] if definition.repeatable else [KeyHold(once_key(definition.name, scope), once=True)]
    own, varying = _unique_holds(definition, scope, key, options)
    fixed += own

    def holds(payload: str, request: str | PartKey | None) -> tuple[KeyHold, ...]:
        nonlocal content, parts
        made = fixed if varying is None else [*fixed, varying(payload)]
        if request is None:
            return tuple(made)
        part = request if isinstance(request, PartKey) else PartKey(request)
        if content is None or parts != part.of:
            parts = part.of
            asked = str(sorted(_plain(options).items()))
            content = fingerprint_with([definition.name], [scope.kind, scope.id, key, asked, parts])
        return _request_hold(part.name, content(payload), within), *made

    return holds


def _unique_holds(
    definition: JobDefinition, scope: Scope, key: str | None, options: Mapping[str, Any]
) -> tuple[list[KeyHold], Callable[[str], KeyHold] | None]:
    """Return the unique keys that these runs have in common, and what makes that of a payload."""
    unique = checked_unique(unique_of(options["unique"]), definition) if "unique" in options else definition.unique
    if unique is None and key is not None and options.get("unique") is not False:
        unique = Unique()  # a key identifies the work: the second enqueue means the same run
    if unique is None:
        return [], None
    on_conflict = on_conflict_of(unique.on_conflict)
    if definition.pipeline and replaces(on_conflict):
        raise Invalid("a pipeline cannot be replaced: parts of it may be done", hint='on_conflict="existing"')
    period = None if unique.period is None else in_micros(unique.period)
    # Without fields, an option of the run says how its key is held, and what the job declares is about the payload.
    by_payload = bool(unique.fields) or key is None or ("unique" not in options and definition.unique is not None)
    by_key = key is not None
    if by_payload and (pending := pending_of(options)):
        require_known(pending, unique.fields or pending, "a unique key", definition.name)
    if replaces(on_conflict):  # by one key: the run that is rewritten would not hold the other
        by_key, by_payload = by_key and not unique.fields, by_payload and (bool(unique.fields) or not by_key)
    clear = unique.clear
    own = [KeyHold(unique_key(definition.name, scope, str(key)), on_conflict, period, clear=clear)] if by_key else []
    if not by_payload:
        return own, None
    name = unique_fields(definition.name, scope, unique.fields)
    return own, lambda payload: KeyHold(name(payload), on_conflict, period, clear=clear)


def request_hold(key: str, *content: object, within: Scope | None = None) -> KeyHold:
    """Return the hold of an idempotency key for 24 hours; `content` is what makes two requests the same.

    `within`: the caller's scope, if it is restricted to one. The key is then local to that scope.
    """
    return _request_hold(key, fingerprint(*content), within)


def _request_hold(key: str, content: str, within: Scope | None) -> KeyHold:
    name = checked_name(key, "idempotency_key")
    return KeyHold(idempotency_key(name, within), period=_IDEMPOTENCY_MICROS, fingerprint=content, label=name)


def asked_as(run: NewRun, request: KeyHold | None) -> NewRun:
    """Put the hold of the request before all other keys, so that a repeated request is recognized first."""
    return run if request is None else msgspec.structs.replace(run, holds=(request, *run.holds))


def gates_of(definition: JobDefinition, scope: Scope, payload: str, *, unlimited: bool = False) -> tuple[Gate, ...]:
    """Return the job's limits as they apply to one run, narrowest first.

    `unlimited` leaves out the limit of all runs at once; limits by key and rates stay.
    """
    limits = [limit for limit in definition.limits if limit.by or limit.per is not None or not unlimited]
    if not limits:
        return ()
    content = msgspec.json.decode(payload) if any(limit.fields for limit in limits) else {}
    # A rate comes before a concurrency limit of the same runs: the end of a run does not change it.
    named = sorted(
        zip(limits, rate_prefixes(limits), strict=True), key=lambda pair: (-len(pair[0].by), pair[0].per is None)
    )
    return tuple(gate_of(definition.name, limit, scope, content, prefix) for limit, prefix in named)


def with_limits_of_schedule(gates: tuple[Gate, ...], own: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """Merge in the schedule's limits, which are wider than those of a key and narrower than those of the job."""
    return narrowest_first((*gates, *own)) if own else gates


def checked_unique(unique: Unique | None, definition: JobDefinition) -> Unique | None:
    """Check the fields of `unique`: a field that no payload has would make all runs of the job the same work."""
    if unique is not None:
        _check_fields(unique.fields, definition)
    return unique


def check_limits(definition: JobDefinition) -> None:
    """Check the fields of limits, and refuse two limits of the same runs.

    A field that no payload has would put all runs of the job under one key.
    """
    seen: set[tuple[frozenset[str], timedelta | None]] = set()
    for limit in definition.limits:
        _check_fields(limit.fields, definition)
        if (frozenset(limit.by), limit.per) in seen:
            what = f"by {', '.join(limit.by)}" if limit.by else "of all its runs: max_concurrency is one, too"
            if limit.per is not None:
                what = f"for the same runs per {format_duration(limit.per)}"
            raise Invalid(f"job {definition.name!r} has two limits {what}", hint="leave one of them out")
        seen.add((frozenset(limit.by), limit.per))


def _check_fields(fields: Iterable[str], definition: JobDefinition) -> None:
    schema = definition.payload_schema
    if schema.get("additionalProperties") is False:
        for field in fields:
            if field not in schema.get("properties", {}):
                hint = did_you_mean(field, schema.get("properties", {}))
                raise Invalid(f"the payload of {definition.name!r} has no field {field!r}", hint=hint)


def _plain(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that make two requests the same; an enqueue's answer in `after` stands for its run id."""
    apart = ("idempotency_key", "after", "inputs", "ref")
    plain = {name: str(value) for name, value in options.items() if name not in apart}
    after = followed_by(options.get("after"), options.get("inputs"))
    return {**plain, "after": str(after)} if after else plain


def unique_of(value: UniqueOption) -> Unique | None:
    """Parse the `unique` option: True (the whole payload), a field, fields, or a dict of all its settings."""
    match value:
        case None | False:
            return None
        case True:
            return Unique()
        case Unique():
            return checked_mode(value)
        case str():
            return Unique((value,))
        case dict():
            for name in value:
                if name not in Unique.__struct_fields__:
                    raise UnknownOption(str(name), Unique.__struct_fields__, where="unique")
            try:
                period = value.get("period")
                period = None if period is None else parse_duration(period, "unique.period")
                return checked_mode(msgspec.convert({**value, "period": period}, Unique, strict=True))
            except (msgspec.ValidationError, TypeError) as error:
                raise Invalid(f"unique: {error}", hint="fields, period, on_conflict, clear") from None
        case list() | tuple():
            return Unique(tuple(checked_name(field, "a field of unique") for field in value))
        case _:
            raise Invalid(f"unique cannot be {value!r:.80}", hint="True, a field, a list of fields, or a Unique")


def own_overrides(run: NewRun) -> Overrides:
    """Decode the policies given for this run instead of its job's."""
    return msgspec.json.decode(run.overrides, type=Overrides) if run.overrides else Overrides()


def scope_of(value: Scope | tuple[str, str] | None) -> Scope:
    if value is None:
        return GLOBAL
    pair = (value.kind, value.id) if isinstance(value, Scope) else value
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return Scope(checked_name(pair[0], "scope kind"), checked_name(pair[1], "scope id"))
    raise Invalid(f"a scope is a pair (kind, id), not {value!r}")


def checked_priority(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not MIN_PRIORITY <= value <= MAX_PRIORITY:
        raise Invalid(f"priority must be {MIN_PRIORITY} to {MAX_PRIORITY}, not {value!r}", hint="higher runs first")
    return value


def _tags(value: object) -> list[str]:
    if not isinstance(value, list | tuple) or len(value) > 50:
        raise Invalid(f"tags must be a list of at most 50 texts, not {value!r:.80}")
    return [checked_name(tag, "tag") for tag in value]


def _metadata(value: object) -> str | None:
    if not isinstance(value, dict):
        raise Invalid(f"metadata must be an object, not {value!r:.80}")
    return json.encode(value, Limits()) if value else None


def _json(value: object) -> str | None:
    return msgspec.json.encode(value).decode() if value else None


class Order(msgspec.Struct, frozen=True, gc=False):
    """Run to enqueue: a job's name, its arguments, and options for this run."""

    job: str
    arguments: dict[str, Any]
    options: Mapping[str, Any] = {}
