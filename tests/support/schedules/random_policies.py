"""Random jobs and schedules: every policy, limit and key, and handlers that take their time and fail."""

import random
import zlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rota.core.calendar.triggers import Trigger, after, every
from rota.core.jobs.job import CancelPolicy, JobDefinition
from rota.core.jobs.retry import Delays, Exponential, RetryPolicy
from rota.core.jobs.unique import Unique
from rota.core.limits.limits import Limit
from rota.core.limits.quotas import Quota

STEP, UNTIL = 5, 90
_FULL: tuple[dict[str, Any], ...] = (
    {},
    {"when_full": "skip"},
    {"when_full": "reject"},
    {"when_full": "cancel_oldest"},
    {"max_queued": 0},
    {"max_queued": 1},
)
_OVERLAPS = ("skip", "allow", "cancel_previous", "parallel", "queue_one", "queue_all")
_FAILURES: tuple[Any, ...] = (
    "run_new",
    "run_new",
    "skip",
    "retry",
    {"mode": "retry", "max_attempts": 2},
    {"mode": "backoff", "backoff": ["7s", "12s"]},
    {"mode": "half_open", "threshold": 1, "cooldown": "12s"},
    {"mode": "half_open", "threshold": 2, "cooldown": "9s"},
    "pause",
)


@dataclass(frozen=True)
class Behaviour:
    """Handlers of one case: how long an attempt takes, and whether it fails, follow from its plan time."""

    seed: int
    durations: tuple[int, ...]
    fails_of_10: int

    def lasts(self, plan_time: int, scope: str, attempt: int) -> int:
        return self.durations[self._drawn("lasts", plan_time, scope, attempt) % len(self.durations)]

    def fails(self, plan_time: int, scope: str, attempt: int) -> bool:
        return self._drawn("fails", plan_time, scope, attempt) % 10 < self.fails_of_10

    def _drawn(self, *what: object) -> int:
        return zlib.crc32(repr((self.seed, *what)).encode())


@dataclass(frozen=True)
class RandomCase:
    """A job with a schedule of the same name. `quota` is that of the schedule's kind of scopes."""

    name: str
    job: JobDefinition
    trigger: Trigger
    options: dict[str, Any]
    behaviour: Behaviour
    quota: Quota | None = None


def outage_of(seed: int) -> tuple[int, int]:
    """Return when nobody plans, in seconds."""
    rng = random.Random(f"outage {seed}")
    begin = rng.randint(8, 30)
    return begin, begin + rng.choice((0, 6, 17, 27, 38))


def draw(seed: int) -> RandomCase:
    rng = random.Random(f"case {seed}")
    name = f"case-{seed}"
    follows = rng.random() < 0.08
    options = {} if follows else _timing(rng)
    options["failure"] = rng.choice(_FAILURES)
    scopes = [(f"kind-{seed}", id) for id in "ab"[: rng.choice((1, 1, 2))]]
    if rng.random() < 0.5 and not follows:
        options["scopes"] = scopes
    elif rng.random() < 0.5:
        options["scopes"] = scopes[:1]
    if rng.random() < 0.4:
        options |= {"max_concurrency": rng.choice((1, 1, 2)), **rng.choice(_FULL)}
    if rng.random() < 0.1:
        options["rate"] = rng.choice(("1/7s", "2/11s"))
    if rng.random() < 0.15:
        options["max_runs"] = rng.randint(1, 9)
    if rng.random() < 0.15:
        options["payload"] = {"at": "{plan_time}"}
    quota = _quota(rng) if "scopes" in options and rng.random() < 0.35 else None
    job = _job(rng, name, stoppable=options.get("overlap") == "cancel_previous")
    if rng.random() < 0.1:
        options["timeout"] = rng.choice(("3s", "9s"))
    durations = tuple(rng.choice((1, 2, 3, 4, 6, 8, 12, 17, 26)) for _ in range(rng.randint(1, 4)))
    behaviour = Behaviour(seed, durations, rng.choice((0, 0, 3, 6, 10)))
    trigger = after(f"{rng.randint(1, 7)}s") if follows else every(f"{STEP}s")
    return RandomCase(name, job, trigger, options, behaviour, quota)


def _timing(rng: random.Random) -> dict[str, Any]:
    """Draw overlap, catch-up, delay and jitter."""
    overlap: Any = rng.choice(_OVERLAPS)
    if overlap == "parallel" and rng.random() < 0.5:
        overlap = {"mode": "parallel", "max_overlap": rng.randint(1, 3)}
    options: dict[str, Any] = {"overlap": overlap, "catch_up": _catch_up(rng)}
    if rng.random() < 0.1:
        options["delay"] = rng.choice(("2s", "7s"))
    if rng.random() < 0.1:
        options["jitter"] = rng.choice(("3s", "9s"))
    return options


def _catch_up(rng: random.Random) -> Any:
    mode = rng.choice(("none", "latest", "all", "all"))
    if mode == "none":
        return {"mode": mode, "grace": rng.choice(("0s", "4s", "60s"))}
    more = {} if rng.random() < 0.5 else {"window": rng.choice(("12s", "20s"))}
    if mode == "latest":
        return {"mode": mode, **more}
    return {"mode": mode, "keep": rng.choice((2, 4, 100)), "per_tick": rng.choice((1, 2, 100)), **more}


def _job(rng: random.Random, name: str, *, stoppable: bool) -> JobDefinition:
    limits = []
    if rng.random() < 0.35:
        limits.append(Limit(max=rng.choice((1, 1, 2, 3)), **rng.choice(_FULL)))
    if rng.random() < 0.2:
        limits.append(Limit(max=rng.choice((1, 2)), by=("scope",), **rng.choice(_FULL)))
    if rng.random() < 0.1:
        limits.append(Limit(max=rng.choice((1, 2)), by=("at",), **rng.choice(_FULL)))
    if rng.random() < 0.1:
        waiting = rng.choice((None, 1))
        limits.append(Limit(max=rng.choice((1, 2)), per=timedelta(seconds=rng.choice((7, 12))), max_queued=waiting))
    unique = None
    if rng.random() < 0.35:
        period = rng.choice((None, None, timedelta(seconds=3), timedelta(seconds=12)))
        unique = Unique(period=period, on_conflict=rng.choice(("existing", "reject", "replace")))
    backoff = rng.choice(
        (
            Delays((timedelta(seconds=4),)),
            Delays((timedelta(seconds=1), timedelta(seconds=9))),
            Delays(()),
            Exponential(base=timedelta(seconds=2), jitter=0.0),
        )
    )
    return JobDefinition(
        name=name,
        queue=name,
        limits=tuple(limits),
        unique=unique,
        retry=RetryPolicy(rng.randint(1, 3), backoff),
        timeout=rng.choice((None, None, None, timedelta(seconds=5))),
        cancel=CancelPolicy(supported=stoppable or rng.random() < 0.85),
    )


def _quota(rng: random.Random) -> Quota:
    rate = Limit(max=rng.choice((1, 2)), per=timedelta(seconds=9)) if rng.random() < 0.3 else None
    most = rng.choice((None, 1, 2))
    waiting = rng.choice((None, 0, 1, 2))
    if rate is None and most is None and waiting is None:
        most = 1
    return Quota(max_concurrency=most, max_queued=waiting, rate=rate)
