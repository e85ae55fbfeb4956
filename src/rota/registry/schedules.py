"""Schedules and scope providers that an application declares."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import msgspec

from rota.core.calendar.triggers import Trigger
from rota.core.schedules.job_triggers import ring
from rota.core.schedules.policies import CatchUp, Failure, Overlap
from rota.core.schedules.schedule import ScheduleDefinition, ScheduleOptions, define, sample
from rota.errors import Conflict, FollowingRing, Invalid, RotaError
from rota.values.clock import HostClock
from rota.values.json import Limits
from rota.values.names import checked_name

if TYPE_CHECKING:
    from rota.registry.jobs import Handler

ScopeProvider = Callable[..., Iterable[Any] | Awaitable[Iterable[Any]]]
"""Callback that returns the current scopes of a schedule, as pairs (kind, id); it may take `now`."""


def takes_now(provider: ScopeProvider) -> bool:
    return "now" in inspect.signature(provider).parameters


def require_callable(name: str, provider: ScopeProvider) -> None:
    """Refuse a provider that could not be called, before planning does."""
    try:
        inspect.signature(provider).bind(**({"now": None} if takes_now(provider) else {}))
    except TypeError as error:
        hint = "it takes nothing, or `now`"
        raise Invalid(f"scope provider {name!r} cannot be called: {error}", hint=hint) from None


class DeclaredOptions(ScheduleOptions, total=False):
    """Options that `app.schedule(name, job, trigger, ...)` accepts, including a notification of its own."""

    notify: str | dict[str, Any]


class DeclaredSchedule(msgspec.Struct, frozen=True):
    """Declared schedule; `fingerprint` tells whether the declaration changed since it was last applied."""

    name: str
    definition: ScheduleDefinition
    fingerprint: str

    def is_applied(self, fingerprint: str | None) -> bool:
        """Return whether the declaration with this fingerprint, perhaps of an older program, says the same."""
        return fingerprint == self.fingerprint or fingerprint in _older_fingerprints(self.definition)


_NO_DURATION = {
    field.name: field.default
    for field in msgspec.structs.fields(ScheduleDefinition)
    if isinstance(field.default, timedelta)
}


def declared(name: str, definition: ScheduleDefinition) -> DeclaredSchedule:
    return DeclaredSchedule(name, definition, _fingerprint(definition))


def _fingerprint(definition: ScheduleDefinition) -> str:
    text = msgspec.json.encode(definition, order="deterministic")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _older_fingerprints(definition: ScheduleDefinition) -> set[str]:
    """Return the fingerprints of other programs that declare the same.

    Some had modes as text, and wrote out some that are the default: they leave a mode out only if it was a literal in
    code, not if it came from a file or the environment. And what is the default is left out if it is the same object,
    which a zero duration is from Python 3.14 on.
    """
    policies = {name: getattr(definition, name) for name in ("catch_up", "overlap", "failure")}
    subsets = chain.from_iterable(combinations(policies, size) for size in range(len(policies) + 1))
    with_modes = [{name: _with_mode(policies[name]) for name in names} for names in subsets]
    durations = {name: value for name, value in _NO_DURATION.items() if getattr(definition, name) == value}
    written = dict.fromkeys(durations, msgspec.Raw(b'"P0D"'))
    return {
        _fingerprint(msgspec.structs.replace(definition, **modes, **zeros))
        for modes in with_modes
        for zeros in (durations, written)
    }


def _with_mode(policy: CatchUp | Overlap | Failure) -> msgspec.Raw:
    text = msgspec.json.encode(policy, order="deterministic")
    if text.startswith(b'{"mode":'):
        return msgspec.Raw(text)
    return msgspec.Raw(b'{"mode":' + msgspec.json.encode(policy.mode) + (b"}" if text == b"{}" else b"," + text[1:]))


class Schedules:
    """Declared schedules by name; nothing is stored before the engine starts."""

    def __init__(self) -> None:
        self.providers: dict[str, ScopeProvider] = {}
        self._declared: dict[str, DeclaredSchedule] = {}

    def __iter__(self) -> Iterator[DeclaredSchedule]:
        return iter(self._declared.values())

    def __len__(self) -> int:
        return len(self._declared)

    def declare(self, name: str, handler: Handler, trigger: Trigger, options: Mapping[str, Any]) -> DeclaredSchedule:
        name = checked_name(name, "schedule name")
        if name in self._declared:
            raise Conflict(f"schedule {name!r} is declared twice", hint="give one of them another name")
        try:
            definition = define(handler.definition, trigger, options, name=name, now=HostClock().micros())
            self._refuse_ring(name, definition)
            if (payload := sample(definition, name)) is not None:
                handler.payload.encode(payload, Limits())
        except RotaError as error:
            raise error.within(f"schedule {name!r}") from None
        schedule = self._declared[name] = declared(name, definition)
        return schedule

    def _refuse_ring(self, name: str, definition: ScheduleDefinition) -> None:
        """Refuse a cycle among the schedules declared here; cycles with others are found when it is stored."""
        if definition.awaited is not None:
            triggers = [(schedule.definition.awaited, schedule.definition.job) for schedule in self]
            path = ring([(by.job, job) for by, job in triggers if by], definition.awaited.job, definition.job)
            if path is not None:
                raise FollowingRing(name, path)

    def provide(self, name: str, provider: ScopeProvider) -> None:
        name = checked_name(name, "scope provider")
        if name in self.providers:
            raise Conflict(f"scope provider {name!r} is registered twice")
        require_callable(name, provider)
        self.providers[name] = provider
