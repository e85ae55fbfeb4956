"""Turn due schedules into runs. Safe in any number of processes: there is no leader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta

from rota.engine.observability.meters import Meters
from rota.errors import Unavailable
from rota.registry.schedules import ScopeProvider
from rota.registry.scope_providers import ask, storable, trouble_with
from rota.store import Store
from rota.store.planning.due import Look
from rota.values.durations import in_micros
from rota.values.scope import Scope

log = logging.getLogger("rota.planner")

_SMALLEST, _LARGEST = 500, 4_000  # schedules in a batch
_FOLLOWERS = 1_000
_PATIENCE = 0.5  # seconds to wait for scope providers before planning without them
_AHEAD = in_micros(timedelta(seconds=1))  # how far beyond its rest it reads ahead
_SPARE, _MOST_READS_AHEAD = timedelta(milliseconds=20), 20  # a shorter rest, or more reads, are not worth it
_PROVIDER_REST = 10.0
_LONGEST_UNSEEN = 5.0


class Planner:
    """Loop that rests until the next schedule is due, or is woken by a change. Scope providers are called each time."""

    def __init__(
        self, store: Store, providers: Mapping[str, ScopeProvider], poll: timedelta, meters: Meters | None = None
    ) -> None:
        self._store = store
        self._clock = store.clock
        self._providers = providers
        self._poll, self._poll_micros = poll, in_micros(poll)
        self._meters = meters or Meters()
        self._zones_checked = False
        self._full = 0
        self._reads_ahead = 0
        self._errors = 0
        self._followers_at = 0.0
        self._resting: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[tuple[Scope, ...] | None]] = {}
        self.runs = 0

    def on_error(self) -> None:
        """Plan smaller batches after an error, to find the schedule that causes it."""
        self._full = 0
        self._errors += 1

    async def step(self) -> timedelta:
        if not self._zones_checked:
            await self._store.planning.replan_zones()
            self._zones_checked = True
        if not self._full:
            look = await self._look()
            if look.ended:
                await self._store.planning.wake_followers(_FOLLOWERS)
            elif look.next_in is None or look.next_in > 0:
                return await self._until_due(look)
        looked_at = await self._plan(await self._scopes())
        if self._full:
            return timedelta(0)
        look = await self._store.planning.look(self._usable(), followers=False)
        # A schedule that is due and was not planned is locked by another planner: do not spin.
        stuck = looked_at == 0 and look.next_in is not None and look.next_in <= 0
        return self._poll if stuck else await self._until_due(look)

    async def _plan(self, scopes: dict[str, tuple[Scope, ...]]) -> int:
        """Plan one batch; return how many schedules were looked at.

        After a full batch the next ones are larger, to wait for the disk less often, and two run at a time, so that one
        is decided while the database writes the other. After an error batches shrink to a single schedule, which is set
        aside if it is the cause.
        """
        full, self._full, self._reads_ahead = self._full, 0, 0
        batch, width = max(1, _SMALLEST >> 2 * self._errors), 1
        if full:
            width = self._store.planning.writers
            batch = min(_LARGEST, _SMALLEST << full + 1) // width
        try:
            planned = await asyncio.gather(*[self._store.planning.plan(batch, scopes) for _ in range(width)])
        except Unavailable:
            raise
        except Exception as error:
            if batch > 1:
                raise
            log.exception("setting aside a schedule that cannot be planned")
            self._meters.set_aside.add()
            await self._store.planning.set_aside(scopes, storable(f"{type(error).__name__}: {error}"))
            return 1
        self._errors = 0
        for batch_result in planned:
            self._meters.planned(batch_result.tally)
        self.runs += sum(batch_result.runs for batch_result in planned)
        if all(batch_result.schedules == batch for batch_result in planned):
            self._full = full + 1
        return sum(batch_result.schedules for batch_result in planned)

    async def _look(self) -> Look:
        """Read when the next schedule is due.

        The search for schedules whose runs have ended takes at most a twentieth of the time, however many wait, and is
        delayed at most `_LONGEST_UNSEEN` if the database was slow once.
        """
        began = self._clock.monotonic()
        followers = began >= self._followers_at
        look = await self._store.planning.look(self._usable(), followers=followers)
        if followers:
            self._followers_at = began + min(_LONGEST_UNSEEN, 20 * (self._clock.monotonic() - began))
        return look

    async def _until_due(self, look: Look) -> timedelta:
        """Return how long to rest, after reading ahead the schedules due then, in small batches while there is time."""
        wait = self._poll_micros if look.next_in is None else min(self._poll_micros, max(0, look.next_in))
        rest, until = timedelta(microseconds=wait), look.now + wait + _AHEAD
        if look.next_at is None or look.next_at > until:
            return rest
        if rest < _SPARE or self._reads_ahead == _MOST_READS_AHEAD:
            return rest
        began = self._clock.monotonic()
        self._reads_ahead += 1
        try:
            if await self._store.planning.read_ahead(until, _SMALLEST):
                return timedelta(0)  # check first whether anything changed
        except Exception:  # only an optimization: an error that matters is raised again by planning
            log.debug("could not read ahead", exc_info=True)
        return max(timedelta(0), rest - timedelta(seconds=self._clock.monotonic() - began))

    async def _scopes(self) -> dict[str, tuple[Scope, ...]]:
        """Call the scope providers that are due, before the transaction: a slow provider must not hold row locks."""
        usable = self._usable()
        due = await self._store.planning.due_providers(usable) if usable else []
        started = {name: asyncio.create_task(self._ask(name)) for name in due if name not in self._asking}
        self._asking.update(started)
        if started:
            await asyncio.wait(started.values(), timeout=_PATIENCE)
        answered = {name: self._asking.pop(name).result() for name, task in list(self._asking.items()) if task.done()}
        return {name: scopes for name, scopes in answered.items() if scopes is not None}

    async def close(self) -> None:
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def _usable(self) -> list[str]:
        """Return the providers known here that did not fail lately.

        Schedules of other providers must not wake this loop.
        """
        now = self._clock.monotonic()
        return [name for name in self._providers if self._resting.get(name, 0.0) <= now]

    async def _ask(self, name: str) -> tuple[Scope, ...] | None:
        try:
            return await ask(self._providers[name], self._store.now)
        except Exception as error:
            trouble = trouble_with(name, error)
            log.warning("%s; its schedules wait", trouble)
            self._meters.provider_errors.add()
            self._resting[name] = self._clock.monotonic() + _PROVIDER_REST
            await self._store.planning.note_provider_trouble(name, trouble)
            return None
