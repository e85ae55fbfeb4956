"""Source of `rota import rq`: the jobs that rq-scheduler keeps in Redis or Valkey, which are only read."""

from __future__ import annotations

from typing import Any

from rota.core.formats.task_queues.rq_hashes import HASH, SCHEDULED, RqHash
from rota.errors import Invalid, Unavailable

_BATCH = 500
_HINT = "redis://host:6379/0, rediss://… or unix:///run/redis.sock?db=0"


def rq_hashes(url: str) -> list[RqHash]:
    """Return all jobs, those that are due first at the front. A job may be gone while its time is still listed."""
    try:
        import redis
    except ModuleNotFoundError:
        hint = 'pip install "rota[redis]"; or write the jobs to a file, as docs/coming-from/rq-scheduler.md shows'
        raise Invalid("reading Redis needs its client", hint=hint) from None
    try:
        # The second version of the protocol: every server has it.
        client: Any = redis.Redis.from_url(url, protocol=2, socket_timeout=60, socket_connect_timeout=10)
    except (ValueError, TypeError) as error:
        raise Invalid(f"the URL is none of Redis: {error}", hint=_HINT) from None
    try:
        with client:
            jobs = _read(client)
    except (redis.RedisError, OSError) as error:
        raise Unavailable(f"cannot read Redis: {error}") from None
    if not jobs:
        raise Invalid(
            "rq-scheduler has no jobs in this database", hint="the number at the end of the URL chooses another: …/1"
        )
    return jobs


def _read(client: Any) -> list[RqHash]:
    times = client.zrange(SCHEDULED, 0, -1, withscores=True)
    jobs: list[RqHash] = []
    for start in range(0, len(times), _BATCH):
        batch = times[start : start + _BATCH]
        reads = client.pipeline(transaction=False)
        for id, _ in batch:
            reads.hgetall(HASH.encode() + id)
        hashes = zip(batch, reads.execute(), strict=True)
        jobs.extend(RqHash(id.decode("utf-8", "replace"), at, fields) for (id, at), fields in hashes)
    return jobs
