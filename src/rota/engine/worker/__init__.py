"""The worker: claim runs, execute them, renew their leases, report what happened.

A worker claims in one order, all from `Worker.step`: `ordered_claims.py` asks for the first runs of each queue, of
whatever kind they are (`store.workers.claims`). While it works through many plain runs it keeps some in a buffer,
claims those alone, and looks for the others from time to time. What must begin at once, such as a run with requirements
or an at-most-once run, waits until the buffer is empty and a slot is free (`held_up`).

Timers decide when each of them looks:

  `ClaimPositions._rescan_at`        0.5 s   forget the watermarks, start again at the head of each queue
  `InOrder._look_at`                 0.2 s   look for all kinds of runs although there is plain work
  `Worker._cancels_at`               poll    read cancel requests for the runs that are active
  `KnownJobs._look_at`               poll    read data jobs that were created or changed
  `Worker._doubt_until`              40 s    after a failed claim: look for leases that this worker does not know of
  the rest between two steps         poll    shorter after an error, or when a limited run was locked by another worker
"""
