"""Decide how much a worker claims: enough that no slot idles, never more than it will start soon."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rota.core.runs.claim import START, Claim, QueueRequest, Watermark, busy_of, shares, still_owed

_MOST_BUFFERED = 3_000
LARGEST_CLAIM = 2_000
_HORIZON = 0.1  # seconds of work to hold in the buffer
_RESCAN = 0.5
# A run of higher priority is seen at the next rescan: it waits no longer behind others, whatever rescans cost.
_RARELY = 5.0


class Rate:
    """Moving average of runs finished per second."""

    def __init__(self) -> None:
        self._count = 0
        self._since: float | None = None
        self.per_second = 0.0

    def add(self, count: int = 1) -> None:
        self._count += count

    def measure(self, now: float) -> None:
        if self._since is None:
            self._since = now
            return
        elapsed = now - self._since
        if elapsed < 0.005:
            return
        weight = min(1.0, elapsed / 0.05)
        self.per_second += weight * (self._count / elapsed - self.per_second)
        self._count, self._since = 0, now


def buffer_target(rate: float) -> int:
    """Return how many runs will start within the horizon.

    It is 0 for slow jobs: another worker may start such a run before this one would.
    """
    return min(_MOST_BUFFERED, int(rate * _HORIZON))


class ClaimPositions:
    """Position in each queue from which to claim next, and which queues had runs lately.

    `weights` is given only if the queues' weights differ.
    """

    def __init__(self, queues: list[str], weights: Mapping[str, int] | None = None) -> None:
        self.queues = queues
        self._weights = weights or {}
        self._owed: dict[str, float] = {}
        self._marks: dict[str, Watermark] = {}
        self._busy: dict[str, bool] = {}
        self._exhausted: set[str] = set()
        self._turn = 0
        self._rescan_at = 0.0
        self._rescan_every = _RESCAN

    def requests(self, wanted: int, now: float, *, exact: bool = False) -> tuple[QueueRequest, ...]:
        """Divide `wanted` runs among the queues and return one request for each.

        A request continues after the queue's watermark. A run of higher priority that was enqueued since is seen at the
        next rescan from the head: at once if `exact`, unless scans have become expensive.
        """
        if now >= self._rescan_at or (exact and self._rescan_every <= _RESCAN):
            self._marks.clear()
            self._busy.clear()
        if not self._marks:
            self._rescan_at = now + self._rescan_every
        in_turn = self.queues[self._turn :] + self.queues[: self._turn]
        # The order rotates: with fewer free slots than queues, each queue gets its turn.
        self._turn = (self._turn + 1) % max(1, len(self.queues))
        split = shares(wanted, in_turn, self._busy, self._weights, self._owed)
        if self._weights:
            self._owed = still_owed(split, busy_of(in_turn, self._busy), self._weights, self._owed)
        return tuple(QueueRequest(queue, count, self._marks.get(queue, START)) for queue, count in split.items())

    def learn(
        self, requests: tuple[QueueRequest, ...], claims: list[Claim], took: float, left: Collection[str] = ()
    ) -> bool:
        """Move the watermarks past `claims`; return whether every queue was scanned from its head and is exhausted.

        `took` is the duration of the claim, in seconds; in the queues `left` there may be more runs of any kind.
        """
        from_start = all(request.after == START for request in requests)
        short = True
        for request in requests:
            queue_claims = claims if len(requests) == 1 else [claim for claim in claims if claim.queue == request.queue]
            scanned = request.after == START
            more = request.queue in left
            self._busy[request.queue] = bool(queue_claims) or not scanned or more
            done = scanned and len(queue_claims) < request.wanted and not more
            (self._exhausted.add if done else self._exhausted.discard)(request.queue)
            short = short and len(queue_claims) < request.wanted and not more
            if queue_claims:
                last = Watermark(*max((claim.rank, claim.run_at, claim.run_id) for claim in queue_claims))
                self._marks[request.queue] = max(last, request.after)
        if from_start:  # passing over many runs that other workers must take is expensive: rescan less often
            self._rescan_every = min(_RARELY, max(_RESCAN, 10 * took))
        if short:
            self._marks.clear()
        exhausted = len(self._exhausted) == len(self.queues)
        if exhausted:
            self._exhausted.clear()
        return exhausted
