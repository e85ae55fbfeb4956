"""Run the APScheduler program of a page, `there.py` in this folder: keep its jobs, then let each function run once.

Leaves the jobs in `kept.sqlite` as they were before, and prints the ids of those that ran.
"""

import shutil
import sys
from datetime import UTC, datetime
from typing import Any

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers import blocking


class Scheduler(blocking.BlockingScheduler):  # type: ignore[misc]  # it has no types
    """The scheduler, with a store of jobs; it ends when each of them has run."""

    def start(self, *_arguments: object) -> None:
        self.add_jobstore(SQLAlchemyJobStore("sqlite:///jobs.sqlite"))
        self.add_listener(self.count, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)
        super().start(paused=True)

    def _main_loop(self) -> None:
        shutil.copy("jobs.sqlite", "kept.sqlite")
        self.left = {job.id for job in self.get_jobs()}
        for job in self.get_jobs():
            job.modify(next_run_time=datetime.now(UTC))
        self.resume()
        super()._main_loop()

    def count(self, event: Any) -> None:
        assert event.exception is None
        print(event.job_id)
        self.left.discard(event.job_id)
        if not self.left:
            self.shutdown(wait=False)


sys.path.insert(0, ".")
blocking.BlockingScheduler = Scheduler
__import__("there")
