"""Let time pass from one due moment to the next, and do what is due at its own time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from rota.client.client import MOST_LISTED, Client
from rota.core.runs.run import Run, RunFilter
from rota.core.states import RunState
from rota.values.instants import micros_at

_BATCH = 1_000
_UNDER_WAY = (RunState.RUNNING, RunState.CANCELLING, RunState.WAITING)


async def next_moment(client: Client, providers: Iterable[str], now: int) -> int | None:
    """Return when something is due next: a plan, a run, a rate that opens, a lease or a timeout that expires."""
    store = client.store
    moments: list[int | None] = [(await store.planning.look(list(providers), followers=False)).next_at]
    if (opens_in := (await store.promote(_BATCH)).next_in) is not None:
        moments.append(now + opens_in)
    delayed = await client.list(RunFilter(states=(RunState.SCHEDULED,)), limit=MOST_LISTED)
    under_way = await client.list(RunFilter(states=_UNDER_WAY), limit=MOST_LISTED)
    moments += [micros_at(run.run_at) for run in delayed]
    moments += [await _end_of_patience(client, run) for run in under_way]
    return min((at for at in moments if at is not None and at > now), default=None)


async def _end_of_patience(client: Client, run: Run) -> int | None:
    """Return the first instant at which a lease or wait of `run` has expired: at its very end it still holds."""
    ends = [attempt.lease_until for attempt in await client.attempts(run.id) if attempt.ended_at is None]
    instants = [at for at in (run.wait_until, *ends) if at is not None]
    return min(map(micros_at, instants)) + 1 if instants else None


async def pass_through(
    ahead: Callable[[], Awaitable[int | None]],
    move: Callable[[int], None],
    act: Callable[[], Awaitable[Sequence[Run]]],
    until: int,
) -> list[Run]:
    """Step through all due moments up to `until`; return the runs that ran, by first time, as they last ended."""
    ran: dict[str, Run] = {run.id: run for run in await act()}
    while (at := await ahead()) is not None and at <= until:
        move(at)
        ran.update({run.id: run for run in await act()})
    move(until)
    ran.update({run.id: run for run in await act()})
    return list(ran.values())
