"""The worker: claim runs, execute them, renew their leases, report what happened.

A worker claims along four paths, all from `Worker.step`:

  ordinary     `Worker.step` itself. Claims ahead into the buffer and remembers a watermark for each queue.
  suspects     `suspects.py`. Runs whose last attempt was lost, one at a time.
  restricted   `restricted_claims.py`. Runs with requirements, and replicas.
  limited      `Worker._claim_limited`. Runs under a concurrency limit, quota or rate.

Only the first path may fill the buffer. The other runs must begin at once, so they are claimed only while the buffer is
empty and slots are free. To make room for them, the buffer is allowed to drain: while a limited or restricted run is
known to wait, and at regular times for solo runs (at-most-once runs, which never wait in a buffer).

Nine timers decide when each of them looks:

  `ClaimPositions._rescan_at`        0.5 s   forget the watermarks, start again at the head of each queue
  `Worker._solo_at`                  0.5 s   let the buffer drain and claim solo runs; 5 s if no job is at-most-once
  `Suspects._look_at`                0.5 s   look for a suspect although there is other work
  `RestrictedClaims._look_at`        0.2 s   look for restricted runs although there is other work
  `Worker._limited_at`               0.2 s   look for limited runs although there is other work
  `Worker._cancels_at`               poll    read cancel requests for the runs that are active
  `KnownJobs._look_at`               poll    read data jobs that were created or changed
  `Worker._doubt_until`              40 s    after a failed claim: look for leases that this worker does not know of
  the rest between two steps         poll    shorter after an error, or when a limited run was locked by another worker
"""
