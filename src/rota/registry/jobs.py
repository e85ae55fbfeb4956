"""Declared jobs: handlers with their definitions, and the registry that finds the handler of a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypedDict, assert_never

from rota.core.alerts.expectations import expectations_of
from rota.core.calendar.triggers import Trigger
from rota.core.jobs.job import ISOLATIONS, CancelPolicy, JobDefinition, JobKind, Retention, isolation_of, kind_of
from rota.core.jobs.retry import Backoff, retry_policy_in
from rota.core.limits.limits import Limit, limits_of
from rota.core.limits.quotas import Quota
from rota.core.progress.steps import StepOption, steps_of
from rota.core.runs.claim import Claim
from rota.core.runs.options import UniqueOption, check_limits, checked_priority, checked_unique, unique_of
from rota.core.runs.outcome import ON_LOST
from rota.core.workers.replicas import ReplicasOption, replicas_of, require_workers
from rota.core.workers.requirements import requirements_of
from rota.errors import Conflict, Invalid, UnknownJob, UnknownOption, did_you_mean
from rota.registry.hooks.lifespan import Lifespans
from rota.registry.hooks.middleware import Middleware
from rota.registry.notifications import Notifications
from rota.registry.process_limits import cpu_limit, local_retries, memory_limit
from rota.registry.retry_filter import Exceptions, RetryFilter
from rota.registry.schedules import Schedules
from rota.registry.signature import PayloadType, ResultType
from rota.values.durations import Duration, parse_duration
from rota.values.names import checked_name, checked_timeout
from rota.values.sizes import Size

if TYPE_CHECKING:
    from rota.registry.hooks.enqueue_middleware import EnqueueMiddleware


class SharedOptions(TypedDict, total=False):
    """Options that jobs in code and data jobs accept."""

    queue: str
    priority: int
    max_attempts: int
    backoff: Backoff | Duration | list[Duration]
    timeout: Duration
    on_lost: Literal["retry", "fail"]
    cancellable: bool
    cancel_grace: Duration
    unique: UniqueOption
    max_concurrency: int
    limit: LimitOption
    only_workers: list[str] | tuple[str, ...]
    labels: list[str] | tuple[str, ...]
    min_worker_version: str
    replicas: ReplicasOption
    expect: dict[str, Any]
    keep: int
    keep_for: Duration
    enabled: bool
    repeatable: bool
    schedulable: bool
    description: str
    tags: list[str] | tuple[str, ...]
    metadata: dict[str, Any]


class JobOptions(SharedOptions, total=False):
    """Options that `@app.job(...)`, `app.external(...)` and `app.pipeline(...)` accept."""

    name: str
    version: int
    isolation: Literal["thread", "process"]
    cpu_limit: Duration
    memory_limit: Size
    local_retries: int
    steps: list[StepOption]
    notify: str | dict[str, Any]
    schedule: Trigger


class FunctionOptions(JobOptions, total=False):
    """Options of jobs that are functions."""

    retry_on: Exceptions
    no_retry_on: Exceptions


LimitOption = dict[str, Any] | Limit | list[dict[str, Any] | Limit] | None

JOB_OPTIONS = tuple(JobOptions.__annotations__)
_FUNCTION_OPTIONS = tuple(FunctionOptions.__annotations__)


class Handler:
    """Job that this process knows. `has_code`: its workers may run it; else it is external, or a pipeline."""

    __slots__ = (
        "call",
        "definition",
        "fn",
        "has_code",
        "is_async",
        "isolation",
        "kind",
        "payload",
        "retries",
        "returns",
    )

    def __init__(self, definition: JobDefinition, fn: Callable[..., Any], payload: PayloadType) -> None:
        self.definition = definition
        self.fn = fn
        self.call = fn
        """Function wrapped in the app's middleware."""
        self.payload = payload
        self.retries: RetryFilter | None = None
        self.returns = ResultType(fn)
        self.kind = kind_of(definition.kind)
        self.has_code = _has_code(self.kind)
        self.isolation = isolation_of(definition.isolation)
        self.is_async = inspect.iscoroutinefunction(fn)


def _has_code(kind: JobKind | None) -> bool:
    match kind:
        case JobKind.PYTHON | JobKind.HTTP | JobKind.COMMAND:
            return True
        case JobKind.EXTERNAL | JobKind.PIPELINE | None:
            return False
        case _:
            assert_never(kind)


def declare(fn: Callable[..., Any], context_type: type, options: Mapping[str, Any]) -> Handler:
    for option in options:
        if option not in _FUNCTION_OPTIONS:
            raise UnknownOption(option, _FUNCTION_OPTIONS, where="a job")
    if fn.__name__ == "<lambda>" and "name" not in options:
        raise Invalid("a lambda has no name", hint='give it one: app.job(name="…")')
    payload = PayloadType.of(fn, context_type)
    described = options.get("description", inspect.getdoc(fn) or "")
    named = {"name": fn.__name__, **options}
    handler = Handler(defined(named, description=described, payload_schema=payload.schema()), fn, payload)
    handler.retries = RetryFilter.of(options)
    return handler


def defined(
    options: Mapping[str, Any], *, description: str, payload_schema: dict[str, Any], **kind: Any
) -> JobDefinition:
    """Build a definition from options, whose names were checked; values are validated here.

    `kind` holds the kind and its settings, for a job without a function.
    """
    definition = JobDefinition(
        name=checked_name(options["name"], "job name"),
        version=_positive(options.get("version", 1), "version"),
        queue=checked_name(options.get("queue", "default"), "queue"),
        priority=checked_priority(options.get("priority", 0)),
        retry=retry_policy_in(options),
        timeout=checked_timeout(options["timeout"]) if options.get("timeout") is not None else None,
        on_lost=_one_of(options.get("on_lost", "retry"), ON_LOST, "on_lost"),
        isolation=_one_of(options.get("isolation", "thread"), ISOLATIONS, "isolation"),
        cpu_limit=cpu_limit(options),
        memory_limit=memory_limit(options),
        local_retries=local_retries(options.get("local_retries", 0)),
        cancel=CancelPolicy(
            options.get("cancellable", True), parse_duration(options.get("cancel_grace", "30s"), "cancel_grace")
        ),
        retention=Retention(
            _positive(options.get("keep", 100), "keep", least=0),
            parse_duration(options.get("keep_for", "30d"), "keep_for"),
        ),
        unique=unique_of(options.get("unique")),
        limits=_limits(options),
        steps=steps_of(options.get("steps")),
        requirements=requirements_of(options),
        replicas=replicas_of(options.get("replicas")),
        expect=None if options.get("expect") is None else expectations_of(options["expect"]),
        enabled=options.get("enabled", True),
        repeatable=options.get("repeatable", True),
        schedulable=options.get("schedulable", True),
        description=description,
        tags=tuple(options.get("tags", ())),
        metadata=options.get("metadata", {}),
        payload_schema=payload_schema,
        **kind,
    )
    checked_unique(definition.unique, definition)
    check_limits(definition)
    if definition.replicas is not None and definition.limits:
        raise Invalid(f"job {definition.name!r} cannot have both replicas and limits", hint="leave one of them out")
    require_workers(definition.replicas, definition.requirements.only_workers)
    return definition


class NewestHandlers(dict[str, Handler]):
    """Handlers of each job's newest version, by the name of the job."""

    def __missing__(self, name: str) -> NoReturn:
        raise UnknownJob(name, self)


class Registry:
    """Handlers by job and version, and everything else that an application declares."""

    def __init__(self) -> None:
        self._handlers: dict[str, dict[int, Handler]] = {}
        self.newest = NewestHandlers()
        self.schedules = Schedules()
        self.quotas: dict[str, Quota] = {}
        self.notifications = Notifications()
        self._surroundings = Middleware()
        self.around_enqueue: EnqueueMiddleware | None = None
        self.lifespans = Lifespans()
        self.builtin: dict[str, Handler] = {}
        """Jobs of rota itself, for workers of their queue; not listed among those of the application."""

    def add(self, handler: Handler) -> None:
        name, version = handler.definition.name, handler.definition.version
        versions = self._handlers.setdefault(name, {})
        if version in versions:
            raise Conflict(
                f"job {name!r} version {version} is declared twice",
                hint="give one of them another name, or a higher version",
            )
        versions[version] = handler
        self.newest[name] = versions[max(versions)]
        handler.call = self._surrounded(handler)

    def surround(self, around: Callable[..., Any], claim: Callable[[], Claim]) -> None:
        """Add middleware, also to the handlers declared before."""
        self._surroundings.add(around, claim)
        for handler in self.handlers():
            handler.call = self._surrounded(handler)

    def _surrounded(self, handler: Handler) -> Callable[..., Any]:
        fn = handler.fn if handler.retries is None else handler.retries.put_around(handler.fn)
        return self._surroundings.put_around(fn, handler.payload.passed)

    def for_run(self, job: str, version: int) -> Handler | None:
        """Return the handler of the run's pinned version, else the next newer: newer code reads older payloads."""
        pinned = self._handlers.get(job, {}).get(version)
        if pinned is not None and pinned.has_code:  # mostly, and asked for every run
            return pinned
        if job in self.builtin:
            return self.builtin[job]
        versions = _able(self._handlers.get(job, {}))
        newer = [other for other in versions if other > version]
        return versions[min(newer)] if newer else None

    def known(self) -> dict[str, int]:
        """Map jobs to their newest version, which can also run older runs; without jobs done by external workers."""
        return {name: max(able) for name, versions in self._handlers.items() if (able := _able(versions))}

    def names(self) -> list[str]:
        return list(self._handlers)

    def definitions(self) -> list[JobDefinition]:
        return [handler.definition for handler in self.handlers()]

    def newest_definitions(self) -> list[JobDefinition]:
        return [handler.definition for handler in self.newest.values()]

    def handlers(self) -> Iterable[Handler]:
        return [handler for versions in self._handlers.values() for handler in versions.values()]

    def queues(self) -> list[str]:
        return sorted({"default"} | {handler.definition.queue for handler in self.handlers() if handler.has_code})


def _able(versions: Mapping[int, Handler]) -> dict[int, Handler]:
    """Return the versions that run here: one version may be external or a pipeline, and the next one not."""
    return {version: handler for version, handler in versions.items() if handler.has_code}


def _limits(options: Mapping[str, Any]) -> tuple[Limit, ...]:
    limits = limits_of(options.get("limit"))
    if options.get("max_concurrency") is None:
        return limits
    return (*limits, Limit(max=_positive(options["max_concurrency"], "max_concurrency")))


def _positive(value: object, what: str, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Invalid(f"{what} must be a whole number from {least} up, not {value!r}")
    return value


def _one_of(value: str, known: tuple[str, ...], what: str) -> str:
    if value not in known:
        raise Invalid(f"{what} cannot be {value!r}", hint=did_you_mean(value, known))
    return value
