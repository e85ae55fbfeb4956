"""APScheduler 3 with its SQLAlchemy job store in a measured process: every job due at the same second."""

import time
from datetime import UTC, datetime
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from benchmarks.children.protocol import say

PER_JOB = 0.004  # seconds to store one: only a guess of how soon all can be due

started: list[float] = []


def noop(n: int) -> None:
    started.append(time.time())


def run(role: str, parameters: dict[str, Any]) -> None:
    assert role == "fire"
    _fire(**parameters)


def _fire(url: str, n: int, cap: float) -> None:
    """Says at (the second), then started (when each job's function was called) once all were, or after `cap`."""
    url = url.replace("postgresql://", "postgresql+psycopg://")
    scheduler = BackgroundScheduler(
        jobstores={"default": SQLAlchemyJobStore(url=url)},
        executors={"default": ThreadPoolExecutor(10)},
        job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        timezone=UTC,
    )
    scheduler.start(paused=True)
    say(ready=True)
    input()
    at = _arm(scheduler, n)
    scheduler.resume()
    time.sleep(max(0.0, at - time.time() - 0.2))
    say(at=at)
    while len(started) < n and time.time() < at + cap:
        time.sleep(0.005)
    say(started=sorted(started))
    input()


def _arm(scheduler: BackgroundScheduler, n: int) -> int:
    lead = n * PER_JOB + 2
    while True:
        at = int(time.time() + lead) + 1
        fire = datetime.fromtimestamp(at, UTC)
        trigger = CronTrigger(hour=fire.hour, minute=fire.minute, second=fire.second, timezone=UTC)
        for number in range(n):
            scheduler.add_job(noop, trigger, [number], id=str(number), replace_existing=True)
        if time.time() < at - 0.5:
            return at
        scheduler.remove_all_jobs()
        lead *= 2
