"""Let each job that a page's rq-scheduler program left in Redis run once: `python rq_program.py URL`.

Prints the functions of those that ran.
"""

import sys

from redis import Redis
from rq import SimpleWorker
from rq_scheduler import Scheduler

sys.path.insert(0, ".")
redis = Redis.from_url(sys.argv[1])
scheduler = Scheduler(connection=redis)
jobs = list(scheduler.get_jobs())
for job in jobs:
    redis.zadd(scheduler.scheduled_jobs_key, {job.id: 0})
scheduler.enqueue_jobs()
list(scheduler.enqueue_jobs())
SimpleWorker(["default"], connection=redis).work(burst=True, logging_level="ERROR")
for job in jobs:
    assert job.get_status(refresh=True) == "finished", job.get_status()
    print(job.func_name.removeprefix("shop."))
