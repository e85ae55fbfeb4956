"""External workers: the assignment that they get, and validation of what they report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, TypedDict
from uuid import UUID

import msgspec
from msgspec import Meta

from rota.core.progress.notes import LONGEST_LINE, LONGEST_LOGGER, LONGEST_SUMMARY, RawLine, encoded, level_of, storable
from rota.core.progress.steps import StepState
from rota.core.runs.run import RunError
from rota.core.states import Outcome
from rota.errors import BadPayload, Invalid, UnknownRun
from rota.values.durations import Duration, format_duration, parse_duration
from rota.values.json import Json, Limits, encode
from rota.values.names import checked_name
from rota.values.scope import Scope

MOST_CLAIMED = 100
MOST_LINES_AT_ONCE = 1_000
LONGEST_POLL = timedelta(seconds=30)
SHORTEST_LEASE, LONGEST_LEASE = timedelta(seconds=1), timedelta(hours=1)
_LARGEST = 2**31 - 1
_LARGEST_REQUEST = Limits(1_000_000)
_LONGEST_TRACEBACK = 20_000
_ERROR_FIELDS = tuple(name for name in RunError.__struct_fields__ if name != "fingerprint")


class Assignment(msgspec.Struct, frozen=True, kw_only=True, rename={"run_id": "id"}):
    """Run assigned to an external worker."""

    run_id: str
    fence: int
    attempt: int
    max_attempts: int
    job: str
    job_version: int
    payload: dict[str, Json]
    scope: Scope
    key: str | None
    plan_time: datetime | None
    idempotency_key: str
    lease_until: datetime
    steps: dict[str, Json] = {}
    """Results of the steps that are done, which need not be repeated."""


class Heartbeat(msgspec.Struct, frozen=True):
    """Answer to a heartbeat: send the next one before `lease_until`."""

    cancelling: bool
    """True if the run was asked to stop."""
    lease_until: datetime


class HeldRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Run that a worker holds, with its fence."""

    id: str
    fence: int


class ErrorReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Error of an external job."""

    message: str
    type: str | None = None
    code: str | None = None
    traceback: str | None = None


class LineReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Log line of an external job."""

    text: str
    level: str = "info"
    logger: str = "external"


class WorkerDescription(TypedDict, total=False):
    """Description of an external worker, by itself."""

    labels: Annotated[
        Annotated[Sequence[str], Meta(max_length=100)] | None,
        Meta(description='What it has, for runs that require it: `["gpu", "zone=eu"]`'),
    ]
    version: Annotated[str | None, Meta(description="Its version, shown among the workers")]


class Identity(msgspec.Struct, frozen=True):
    """External worker: its name, and an id of this start of the program (`boot`)."""

    name: str
    boot: str

    @property
    def id(self) -> str:
        return f"{self.name}@{self.boot}"


def identity_of(worker: object, boot: str) -> Identity:
    """Parse `"name"` or `"name@boot"`; `boot` is used if the caller gives none."""
    name, mark, own = checked_name(worker, "worker").rpartition("@")
    if not mark:
        return Identity(own, boot)
    return Identity(checked_name(name, "the name of a worker"), checked_name(own, "the boot of a worker"))


def checked_run(run_id: object, fence: object) -> tuple[str, int]:
    """Validate a run id and a fence; a shortened id is refused, since those are for people."""
    if type(fence) is not int or not 1 <= fence <= _LARGEST:
        raise Invalid(f"a fence is a whole number from 1 up, not {fence!r:.40}", hint="it comes with the run")
    try:
        return str(UUID(run_id if isinstance(run_id, str) else "")), fence
    except ValueError:
        raise UnknownRun(f"{run_id!s:.80}") from None


def checked_lease(lease: Duration | None, usual: timedelta) -> timedelta:
    span = usual if lease is None else parse_duration(lease)
    if lease is not None and not SHORTEST_LEASE <= span <= LONGEST_LEASE:
        bounds = f"{format_duration(SHORTEST_LEASE)} to {format_duration(LONGEST_LEASE)}"
        raise Invalid(f"lease must be {bounds}, not {format_duration(span)}")
    return span


def checked_wait(wait: Duration | None) -> timedelta:
    span = timedelta(0) if wait is None else parse_duration(wait)
    if not timedelta(0) <= span <= LONGEST_POLL:
        raise Invalid(f"wait must be up to {format_duration(LONGEST_POLL)}, not {format_duration(span)}")
    return span


def checked_most(most: object) -> int:
    if type(most) is not int or not 1 <= most <= MOST_CLAIMED:
        raise Invalid(f"max must be 1 to {MOST_CLAIMED}, not {most!r:.40}")
    return most


def checked_error(error: object) -> RunError:
    """Parse an error: a text, or the fields of a `RunError`.

    It has no fingerprint: that is computed where the payload is known.
    """
    if isinstance(error, str):
        error = {"message": error}
    if isinstance(error, RunError):
        error = msgspec.structs.replace(error, fingerprint=None)
    fields = msgspec.to_builtins(error) if isinstance(error, RunError | ErrorReport | Mapping) else None
    if not isinstance(fields, dict) or not isinstance(fields.get("message"), str) or not fields["message"].strip():
        raise Invalid(f"an error must be text or have a message, not {error!r:.80}")
    unknown = set(fields) - set(_ERROR_FIELDS)
    if unknown or not all(value is None or isinstance(value, str) for value in fields.values()):
        raise Invalid(f"an error has {', '.join(_ERROR_FIELDS)}, all text, not {error!r:.80}")
    code, traceback = fields.get("code"), fields.get("traceback")
    return RunError(
        type=storable(fields.get("type") or "Failed", LONGEST_LOGGER),
        message=storable(fields["message"], LONGEST_LINE),
        code=None if code is None else storable(code, LONGEST_LOGGER),
        traceback=None if traceback is None else storable(traceback, _LONGEST_TRACEBACK),
    )


def listed(names: Sequence[str] | str) -> list[str]:
    """Return one name, or several, as a list."""
    return [names] if isinstance(names, str) else [*names]


def written_held(held: Iterable[tuple[str, int]]) -> list[HeldRun]:
    return [HeldRun(id, fence) for id, fence in held]


def read_held(held: Iterable[HeldRun]) -> list[tuple[str, int]]:
    return [(run.id, run.fence) for run in held]


def written_error(error: str | RunError | Mapping[str, Any]) -> ErrorReport:
    """Return an error checked and complete; its fingerprint is computed where the payload is known."""
    checked = checked_error(error)
    return ErrorReport(message=checked.message, type=checked.type, code=checked.code, traceback=checked.traceback)


def stored_result(result: object) -> msgspec.Raw:
    """Encode a result; the server refuses one that is larger than it stores."""
    return msgspec.Raw(result_text(result, _LARGEST_REQUEST).encode())


def result_text(result: object, limits: Limits) -> str:
    """Return a result as JSON."""
    try:
        return encode(result, limits)
    except BadPayload as error:
        raise Invalid(f"the result cannot be stored: {error.problem}") from None


def written_lines(lines: Iterable[str | Mapping[str, Any]]) -> list[str | Mapping[str, Any]]:
    """Return log lines as a list; one line may be given alone."""
    return [lines] if isinstance(lines, str | Mapping) else [*lines]


def lines_told(lines: Iterable[str | Mapping[str, Any]]) -> str:
    """Encode log lines: texts, or `{"text": …, "level": "info", "logger": …}`."""
    items = written_lines(lines)
    if not 1 <= len(items) <= MOST_LINES_AT_ONCE:
        raise Invalid(f"give 1 to {MOST_LINES_AT_ONCE} lines at once, not {len(items)}")
    return encoded([_line(line) for line in items])


def _line(line: object) -> RawLine:
    if isinstance(line, LineReport):
        line = msgspec.structs.asdict(line)
    fields = {"text": line} if isinstance(line, str) else line
    if not isinstance(fields, Mapping) or not isinstance(fields.get("text"), str):
        raise Invalid(f"a line must be text or have a text, not {line!r:.80}")
    logger = fields.get("logger", "external")
    if set(fields) - {"text", "level", "logger"} or not isinstance(logger, str):
        raise Invalid(f"a line has text, level and logger, not {line!r:.80}")
    return (
        0,
        level_of(fields.get("level", "info")),
        storable(logger, LONGEST_LOGGER),
        storable(fields["text"], LONGEST_LINE),
    )


def said_summary(summary: object) -> str | None:
    return None if summary is None else storable(summary, LONGEST_SUMMARY)


def names_told(names: Sequence[str] | str, what: str) -> tuple[str, ...]:
    """Validate one name or several, without duplicates, in their order."""
    items = listed(names)
    if not items:
        raise Invalid(f"give at least one {what}")
    return tuple(dict.fromkeys(checked_name(name, what) for name in items))


class ExternalReport(msgspec.Struct, frozen=True):
    """Report of an external party on its run; `retry` and `after` of a failure."""

    outcome: Outcome
    result: str | None = None
    error: RunError | None = None
    retry: bool = True
    after: timedelta | None = None


class StepReport(msgspec.Struct, frozen=True):
    """Report on a step; `result` is JSON."""

    id: str
    state: StepState
    result: str | None = None
    error: RunError | None = None
