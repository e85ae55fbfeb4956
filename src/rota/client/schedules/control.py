"""Verbs that control a schedule: pause, resume and trigger it. Part of `client.schedules`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from rota.client.schedules.forms import schedule_verb
from rota.core.access.roles import Role
from rota.core.jobs.status import resume_mode
from rota.core.runs.options import request_hold, scope_of
from rota.core.runs.run import Run
from rota.core.schedules.schedule import Schedule
from rota.errors import Invalid
from rota.registry.jobs import Registry
from rota.registry.scope_providers import ask, trouble_with
from rota.values.actor import checked_actor
from rota.values.durations import Duration, in_micros, parse_duration
from rota.values.instants import micros_at
from rota.values.scope import Scope
from rota.verbs import examples
from rota.verbs.verb import verb

if TYPE_CHECKING:
    from rota.store import Store

_LONGEST_PAUSE = timedelta(days=36_525)

PauseReason = Annotated[str, Meta(max_length=1_000)]


class ControlVerbs(ABC):
    """Verbs that control a schedule, by name."""

    _store: Store
    _registry: Registry

    @abstractmethod
    async def get(self, name: str, *, recent: int | None = None) -> Schedule: ...

    @schedule_verb(
        "POST",
        "/schedules/{name}/pause",
        Role.OPERATOR,
        optional_body=True,
        takes={"reason": "maintenance", "until": "2h"},
    )
    async def pause(
        self,
        name: str,
        *,
        reason: Annotated[PauseReason | None, Meta(description="Why, for people")] = None,
        actor: str | None = None,
        until: Annotated[
            datetime | Duration | None, Meta(description="When the pause ends: a time, or a duration from now")
        ] = None,
    ) -> Schedule:
        """Pause a schedule. `until` is a datetime, or a duration from now; without it, until it is resumed."""
        return await self._store.schedules.pause(name, reason, checked_actor(actor), _end_of_pause(until))

    @schedule_verb("POST", "/schedules/{name}/resume", Role.OPERATOR, optional_body=True, takes={"catch_up": "latest"})
    async def resume(
        self,
        name: str,
        *,
        catch_up: Annotated[
            str, Meta(description="Which plan times of the pause still run: none (`skip`), the `latest`, or `all`")
        ] = "skip",
        actor: str | None = None,
    ) -> Schedule:
        """Resume a schedule. Plan times during the pause are skipped, unless `catch_up` is `latest` or `all`."""
        return await self._store.schedules.resume(name, resume_mode(catch_up), checked_actor(actor))

    @verb(
        "POST",
        "/schedules/{name}/trigger",
        Role.OPERATOR,
        status=201,
        optional_body=True,
        takes={"scope": "tenant/42"},
        gives=examples.RUN,
    )
    async def trigger(
        self,
        name: str,
        *,
        scope: Annotated[
            Scope | tuple[str, str] | None, Meta(description="Only this scope, `kind/id`; by default all of its scopes")
        ] = None,
        force: Annotated[bool, Meta(description="Ignore the overlap policy")] = False,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sequence[Run]:
        """Run a schedule now, for each of its scopes or only for `scope`. Raise `Overlapping` if its overlap policy
        forbids that, unless `force` is set.

        Return the runs. They belong to the schedule, but to no plan time. With an `idempotency_key` the call is safe to
        repeat: it returns the runs created the first time.
        """
        only_scope = None if scope is None else scope_of(scope)
        request = None if idempotency_key is None else request_hold(idempotency_key, "trigger", name, only_scope, force)
        checked = checked_actor(actor)
        named = await self._provided_scopes(name) if only_scope is None else ()
        return await self._store.schedules.trigger(
            name, only_scope, named=named, force=force, actor=checked, request=request
        )

    async def _provided_scopes(self, name: str) -> Sequence[Scope]:
        """Return the scopes that the schedule's provider names now, if this process has it. Its errors are recorded
        where planning shows them."""
        providers = self._registry.schedules.providers
        provider = (await self.get(name)).definition.provider if providers else None
        if provider is None or provider not in providers:
            return ()
        try:
            return await ask(providers[provider], self._store.now)
        except Exception as error:
            await self._store.planning.note_provider_trouble(provider, trouble_with(provider, error))
            return ()


def _end_of_pause(until: datetime | Duration | None) -> Callable[[int], int] | None:
    """Return what tells the end of a pause from its beginning."""
    if until is None:
        return None
    if isinstance(until, datetime) and until.tzinfo is None:
        raise Invalid("until must be a datetime with a zone")
    given = micros_at(until) if isinstance(until, datetime) else in_micros(parse_duration(until, "until"))

    def end(now: int) -> int:
        at = given if isinstance(until, datetime) else now + given
        if at <= now:
            raise Invalid("until must be in the future")
        # A later instant may exceed what datetime can represent when it is read back.
        if at - now > in_micros(_LONGEST_PAUSE):
            raise Invalid("until must be within a hundred years")
        return at

    return end
