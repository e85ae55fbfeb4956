"""Gauges: the current lengths of queues and numbers of workers, schedules and breaches."""

from __future__ import annotations

from rota.core.monitoring.counters import Gauges, QueueGauge
from rota.store.databases.database import Tx

MOST = 1_000_000
"""Runs counted at most. Monitoring must not slow down a queue that is too long already."""
_LATE = 10_000_000
_MOST_BREACHES = 200
_STATES = ("active", "paused", "job_paused", "disabled", "ended")


async def levels(tx: Tx, silence: int) -> Gauges:
    """Read the gauges. `silence`: how long a living worker may be silent, in microseconds."""
    queues = await tx.fetch("queue_levels", most=MOST)
    ((alive, silent, slots, servers),) = await tx.fetch("worker_levels", silence=silence)
    ((overdue,),) = await tx.fetch("count_overdue", late=_LATE, most=MOST)
    breached = await tx.fetch("breach_levels", most=_MOST_BREACHES)
    return Gauges(
        queues=[
            QueueGauge(queue, state, int(runs), None if state == "scheduled" else int(oldest))
            for queue, state, runs, oldest in queues
        ],
        workers_alive=int(alive),
        workers_silent=int(silent),
        slots=int(slots),
        servers=int(servers),
        schedules=await schedule_states(tx),
        overdue=int(overdue),
        breached=tuple((kind, subject, what) for kind, subject, what in breached),
    )


async def schedule_states(tx: Tx) -> dict[str, int]:
    """Return the number of schedules in each state."""
    counts = {state: int(count) for state, count in await tx.fetch("schedule_levels")}
    return {state: counts.get(state, 0) for state in _STATES}
