"""Simulation of a schedule over a span of virtual time, planned by the same function as real runs."""

from __future__ import annotations

from rota.core.jobs.retry import RetryPolicy
from rota.core.planning.assumptions import Assumptions, Beginning, Simulation
from rota.core.planning.overlap_and_failure import Lane
from rota.core.planning.simulated_world import World
from rota.core.planning.tick import ScheduleState
from rota.errors import Invalid


def simulate(
    standing: ScheduleState,
    retry: RetryPolicy,
    start: int,
    until: int,
    assuming: Assumptions | None = None,
    *,
    beginning: Beginning | None = None,
    limit: int = 1_000,
    most: int = 100_000,
) -> Simulation:
    """Simulate from `start` to `until`; `retry` is that of the runs. After `most` decisions it ends early, and says so.

    `beginning` has what is there at the start: its live runs go on, and are in no count. Another policy is tried by
    another definition in `standing`.
    """
    if until < start:
        raise Invalid("a simulation cannot end before it starts")
    beginning = beginning or Beginning()
    lanes = {scope: Lane() for scope in standing.definition.lanes} | dict(beginning.lanes)
    world = World(standing, retry, assuming or Assumptions(), lanes, limit)
    reached = world.run_until(start, until, most, beginning)
    return Simulation(tuple(world.events), world.counts, reached, world.more)
