"""The state of an installation, as check-ups judge it."""

from __future__ import annotations

from rota.core.checkups import Held, Overdue, Stuck, Symptoms
from rota.store.database import Tx
from rota.store.explaining import live_workers
from rota.store.ledger import snapshot

_LATE = 10_000_000
_MOST = 100
_UNTOLD = 60_000_000
_ATTEMPTS = 10_000


async def symptoms(tx: Tx, silence: int, stuck_for: int) -> Symptoms:
    """`silence`: how long a living worker may be silent; `stuck_for`: how long ago a lease must have ended."""
    await snapshot(tx)
    ((now,),) = await tx.fetch("now")
    overdue = await tx.fetch("overdue_schedules", late=_LATE, limit=_MOST)
    stuck = await tx.fetch("stuck_leases", late=stuck_for, limit=_MOST)
    ((waits,),) = await tx.fetch("orphaned_waits")
    ((limits,),) = await tx.fetch("orphaned_limits")
    ((signals,),) = await tx.fetch("untold_signals", late=_UNTOLD)
    return Symptoms(
        now=int(now),
        overdue=[Overdue(*row) for row in overdue],
        stuck=[Stuck(str(run_id), worker_id, expires_at) for run_id, worker_id, expires_at in stuck],
        queues={queue: int(count) for queue, count in await tx.fetch("claimable_by_queue")},
        jobs={job: int(count) for job, count in await tx.fetch("claimable_by_job")},
        held=[Held(*row) for row in await tx.fetch("all_pauses", limit=_MOST)],
        workers=await live_workers(tx, silence),
        orphaned_waits=int(waits),
        orphaned_limits=int(limits),
        signals=int(signals),
        begun_and_skipped=[str(id) for (id,) in await tx.fetch("begun_and_skipped", looked=_ATTEMPTS, limit=_MOST)],
    )
