"""The worker: claim runs, hand them to handlers, report the outcomes, and hand back what it cannot finish."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta

from rota.config import Config
from rota.core.runs.claim import PLAIN, Claim, ClaimRequest, QueueRequest
from rota.core.runs.outcome import Report
from rota.core.states import Outcome
from rota.core.workers.worker import WorkerInfo, inbox_of
from rota.engine.handlers.attempt import Attempt, Reports, describe
from rota.engine.handlers.current_run import RunFields
from rota.engine.handlers.note_buffer import NoteBuffer
from rota.engine.observability.log_capture import capture
from rota.engine.observability.meters import Meters
from rota.engine.observability.repeated_errors import RepeatedErrors
from rota.engine.rest import Rest
from rota.engine.worker.appetite import LARGEST_CLAIM, Rate, buffer_target
from rota.engine.worker.buffer import Buffer
from rota.engine.worker.executor import Executor
from rota.engine.worker.heartbeat import Beat, HeartbeatThread
from rota.engine.worker.known_jobs import KnownJobs
from rota.engine.worker.operator_settings import OperatorSettings
from rota.engine.worker.ordered_claims import InOrder
from rota.engine.worker.reporter import Reporter
from rota.errors import DatabaseCopied, RotaError
from rota.registry.jobs import Registry
from rota.store import Store
from rota.store.workers.due_work import DueWork
from rota.values.durations import in_micros
from rota.values.json import Limits

log = logging.getLogger("rota.worker")

_DOUBT = 40.0  # seconds; longer than the server may still work on a claim whose answer was lost
_AGAIN = 0.02  # seconds until another look at runs that somebody else was at; twice as long after each in vain
_TROUBLE = 0.5
_STUCK = 2.0  # seconds without a free slot for the buffer, which should be empty after a tenth of one
_LAST_REPORTS = 3.0


class Worker:
    """One worker of a process. `held` maps run id → fence of every lease, buffered or active.

    `_moved_at`: when the buffer was last empty, or a run of it began.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        info: WorkerInfo,
        config: Config,
        heartbeat: type[HeartbeatThread] = HeartbeatThread,
        meters: Meters | None = None,
    ) -> None:
        self.held: dict[str, int] = {}
        self._store = store
        self._operator_settings = OperatorSettings(info, config)
        self._jobs = KnownJobs(store, registry, config)
        self._known = self._jobs.known
        self.info, self._config = self._operator_settings.set_jobs(tuple(self._known)), config
        self.asked_to_stop: Callable[[], None] = lambda: None
        self.rate_shut: Callable[[], None] = lambda: None
        self._clock = store.clock
        self._errors = RepeatedErrors(log, "claiming", self._clock)
        self._buffer = Buffer()
        self._rate = Rate()
        self.rest = Rest()
        self._stopping = False
        self._doubt_until = 0.0
        self._in_order = InOrder(store, in_micros(config.lease))
        self._cancels_at = 0.0
        self._inbox = inbox_of(info.id)
        self._lease = config.lease.total_seconds()
        self._renewed_at = self._moved_at = self._clock.monotonic()
        self._reports = Reports(self._clock, Limits(config.max_payload))
        self._meters = meters or Meters()
        self._note_buffer = NoteBuffer(store, config.log_limit, self._refused)
        self._reporter = Reporter(store, self._settled, self._meters, self._note_buffer.flush)
        self._heartbeat = heartbeat(store, self.info, self.held, config.lease, config.heartbeat, self._meters)
        self.renew = self._heartbeat.renew_now
        self._executor = Executor(store, info, config, self._note_buffer, self._reports, self)
        self.active = self._executor.active
        self.use = self._executor.use
        self._tasks: list[asyncio.Task[None]] = []
        self._unlisten: Callable[[], None] = lambda: None
        self._low_water = 0
        self._more = True
        self._loop = asyncio.get_running_loop()
        self._filling = False
        self._again, self._missed = _AGAIN, False
        self._drained: list[str] | None = None

    async def start(self) -> None:
        """Start the loops; return once the worker is claiming. It survives an outage of the database."""
        self._heartbeat.start(self.on_heartbeat)
        self._unlisten = self._store.listen(self._hinted)
        capture.install()
        loops = (self._claiming(), self._reporter.run(), self._note_buffer.run())
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def stop(self, grace: timedelta | None = None) -> None:
        """Claim nothing more, hand back the buffer, give active attempts their grace, then hand back the rest."""
        if self._stopping:
            return
        self._stopping = True
        self._operator_settings.stop()
        self._apply_settings()
        limit = self._config.shutdown_grace if grace is None else grace
        await self._executor.end(limit.total_seconds())
        await self._wait_for_claim()
        await self._reporter.flush(_LAST_REPORTS)
        await self._close()

    async def _wait_for_claim(self) -> None:
        """Wait for a claim in flight: cancelling it would leave leases that nobody knows of."""
        if self._tasks:
            await asyncio.wait(self._tasks[:1], timeout=_LAST_REPORTS)

    async def drain_once(self) -> list[str]:
        """Claim, wait for the handlers and report, without the loops; return the ids of the runs claimed."""
        claimed: list[str] = []
        self._drained = claimed
        while not await self.step() and not claimed:
            pass
        while self.active:
            await self._executor.wait(None)
        while self._reporter.pending:
            await self._reporter.step()
        return claimed

    async def _close(self) -> None:
        self._unlisten()
        if self._tasks:
            capture.remove()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._heartbeat.stop()
        await self._executor.close()
        with contextlib.suppress(RotaError, TimeoutError):
            async with asyncio.timeout(2):
                await self._store.worker_gone(self.info.id)

    def _hinted(self, queue: str | None) -> None:
        if queue == self._inbox:
            self._cancels_at = 0.0  # somebody asks one of its runs to stop: look at once
            self.wake()
        elif queue in self.info.queues:
            self._again = _AGAIN
            self.wake()
        elif queue is None:
            self._again = _AGAIN
            self.rest.hint()

    def wake(self) -> None:
        self.rest.wake()

    async def _claiming(self) -> None:
        while not self._stopping:
            try:
                await self._look_for_cancels()
                rest = await self.step()
                self._errors.recovered()
            except DatabaseCopied:  # nothing was claimed
                rest = _TROUBLE
            except Exception as error:
                self._errors.failed(error)
                self._meters.claims_failed.add()
                self._doubt_until = self._clock.monotonic() + _DOUBT
                rest = _TROUBLE
            if rest:  # else a wake is kept: one during any of the claims that a look takes must lead to another look
                await self.rest.take(rest)

    def due_in(self, work: DueWork) -> int | None:
        """Return how soon there is something to claim, to learn or to look after (µs); None: nothing."""
        at_rest = not self.held and self._clock.monotonic() >= self._doubt_until
        return work.worker if at_rest and work.data_jobs == self._jobs.seen else 0

    async def _look_for_cancels(self) -> None:
        """Read cancel requests at the poll interval; the heartbeat brings them too, but later."""
        now = self._clock.monotonic()
        if self.active and now >= self._cancels_at:
            self._cancels_at = now + self._config.poll.total_seconds()
            for run_id, fence, by_policy in await self._store.cancelling(self.info.id):
                self._cancel_if_held(run_id, fence, by_policy=by_policy)

    def _cancel_if_held(self, run_id: str, fence: int, *, by_policy: bool = False) -> None:
        """Cancel the attempt under this fence, or drop the claim from the buffer and report it as cancelled."""
        attempt = self.active.get(run_id)
        if attempt is not None and attempt.claim.fence == fence:
            self._executor.cancel(attempt, by_policy=by_policy)
        elif self.held.get(run_id) == fence and self._buffer.take(run_id):
            self._reporter.add(Report(run_id, fence, Outcome.CANCELLED, began=False))

    async def step(self) -> float:
        """Claim once; return how many seconds to rest unless woken."""
        await self._hand_back_unknown()
        if not self._operator_settings.may_claim:
            return self._config.poll.total_seconds()
        self._fill()
        now = self._clock.monotonic()
        if self._jobs.due(now) and await self._jobs.refresh(now):
            self._learn_jobs()
        self._rate.measure(now)
        target = buffer_target(self._rate.per_second)
        wanted = self._appetite(target)
        if wanted <= 0:
            self._more = True
            return self._config.poll.total_seconds()
        asks = self._operator_settings.positions.requests(wanted, now, exact=not target)
        if target and not self._in_order.due(asks, now):
            return await self._claim_plain(asks, now)
        return await self._claim_in_order(asks, now, exact=not target)

    def _learn_jobs(self) -> None:
        """Publish the jobs known now with the next heartbeat."""
        self.info = self._operator_settings.set_jobs(tuple(self._known))
        self._heartbeat.change(self.info, self._config.heartbeat, at_once=False)

    async def _claim_plain(self, asks: tuple[QueueRequest, ...], now: float) -> float:
        """Claim plain runs only. Whether others wait is looked at in between, and before the worker rests."""
        positions = self._operator_settings.positions
        request = ClaimRequest(self.info.id, asks, self._known, in_micros(self._config.lease), PLAIN)
        claims = await self._store.claim(request)
        if positions.learn(asks, claims, self._clock.monotonic() - now):
            self._in_order.look_soon()
        self._more = True
        self._accept(claims, now)
        return 0

    async def _claim_in_order(self, asks: tuple[QueueRequest, ...], now: float, *, exact: bool) -> float:
        """Claim the first runs of all kinds. Those with requirements, for example, only go into free slots."""
        positions, slots = self._operator_settings.positions, 0 if self._buffer else self._free()
        answer = await self._in_order.claim(self.info, self._known, asks, slots, now, exact=exact)
        exhausted = positions.learn(asks, answer.plain, answer.took, answer.left)
        self._more = answer.held_up or not exhausted
        if answer.shut:
            self.rate_shut()
        claims = [*answer.others, *answer.plain]
        self._accept(claims, now)
        self._missed = self._missed or answer.missed  # with few free slots, a look at all queues takes several claims
        if claims:
            self._again = _AGAIN
        return 0 if self._more and not answer.held_up else self._rest()

    def _rest(self) -> float:
        """Return how long to rest after a look at all queues."""
        poll, missed, self._missed = self._config.poll.total_seconds(), self._missed, False
        rest = min(poll, self._again) if missed else poll
        # Whoever is at those runs may keep them for long: each look in vain doubles the rest.
        self._again = 2 * rest if missed else _AGAIN
        return rest

    def _appetite(self, target: int) -> int:
        """Return how many runs to claim. `target`: how many the buffer should have."""
        self._low_water = 0 if self._in_order.held_up else target // 3
        free = self._free()
        if self._in_order.held_up and (self._buffer or free <= 0):
            return 0
        room = min(LARGEST_CLAIM, free + target - len(self._buffer))
        worth_it = not self._buffer or room >= min(200, self._config.concurrency)
        return room if worth_it else 0

    def _free(self) -> int:
        return self._config.concurrency - self._executor.slots_taken

    def _accept(self, claims: list[Claim], now: float) -> None:
        self._meters.claimed(claims, self._clock.monotonic())
        capture.reinstall()
        for claim in claims:
            # Race: the old lease expired and this worker claimed the run again before a heartbeat reported the loss.
            if claim.run_id in self.held:
                self._lost(claim.run_id)
            self.held[claim.run_id] = claim.fence
        if self._drained is not None:  # for `drain_once`: a run may have ended before it could look at `held`
            self._drained.extend(claim.run_id for claim in claims)
        if claims:
            self._renewed_at = min(self._renewed_at, now) if self._buffer else now
            self._moved_at = self._moved_at if self._buffer else now
            self._buffer.extend(claims)
        if not self._operator_settings.may_claim:
            self._hand_back_buffer()
        self._fill()

    async def _hand_back_unknown(self) -> None:
        """Hand back leases that are not in `held`: a claim may have succeeded although its answer was lost.

        One of a former epoch may be there again because a failover lost its report: then its handler has begun.
        """
        if self._clock.monotonic() >= self._doubt_until:
            return
        unknown = [lease for lease in await self._store.leases_of(self.info.id) if self.held.get(lease[0]) != lease[1]]
        if unknown:
            floor = await self._store.standing.floor()
            await self._store.report(
                [Report(id, fence, Outcome.HANDED_BACK, began=fence < floor) for id, fence in unknown]
            )

    def _fill(self) -> None:
        buffer, free = self._buffer, self._free()
        if free > 0 and buffer:
            self._moved_at = self._clock.monotonic()
            fresh = self._moved_at - self._renewed_at <= self._lease
            for _ in range(min(free, len(buffer))):
                self._begin(buffer.popleft(), fresh)

    def _settled(self, report: Report) -> None:
        self._release(report.run_id, report.fence)
        if report.limited and not self._store.due_work.is_told:
            self.wake()  # somebody may wait for its slots, and no hint will tell

    def freed(self) -> None:
        """Fill a slot that became free, with all that become free in this turn of the event loop."""
        if not self._filling:
            self._filling = True
            self._loop.call_soon(self._fill_freed)

    def _fill_freed(self) -> None:
        """Fill the slots that became free, and claim more if the buffer is low."""
        self._filling = False
        self._fill()
        if self._more and len(self._buffer) <= self._low_water:
            self.rest.wake()

    def _begin(self, claim: Claim, fresh: bool) -> None:
        """Begin a claim, or hand it back if its lease may have expired in the buffer."""
        handler = self._jobs.for_run(claim.job, claim.job_version)
        if handler is None or not fresh:
            self._reporter.add(self._reports.hand_back(claim))
            return
        self._executor.begin(claim, handler)

    def ended(self, attempt: Attempt, report: Report | None) -> None:
        self._rate.add()
        if report is None:
            self._release(attempt.claim.run_id, attempt.claim.fence)
        else:
            self._reporter.add(report)
            if report.error is not None:
                log.warning("%s", describe(attempt, report), extra=RunFields(attempt.claim))
        self.freed()

    def on_heartbeat(self, beat: Beat) -> None:
        """Apply the answer of a heartbeat: losses, cancels and operators' requests."""
        # A claim made since the snapshot was not renewed by this beat.
        if all(beat.held.get(claim.run_id) == claim.fence for claim in self._buffer):
            self._renewed_at = max(self._renewed_at, beat.began_at)
        for run_id in sorted(beat.extended.lost):
            if self.held.get(run_id) == beat.held[run_id]:  # otherwise it was claimed again meanwhile
                self._lost(run_id)
        for run_id in sorted(beat.extended.cancelling):
            self._cancel_if_held(run_id, beat.held[run_id])
        if self._clock.monotonic() - self._moved_at > _STUCK:
            self._hand_back_limited()
        if beat.extended.cancelling:  # it does not tell who asked: that is read next, and a policy's cancel interrupts
            self._hinted(self._inbox)
        if self._operator_settings.update(beat.extended.asked):
            self._apply_settings()

    def _apply_settings(self) -> None:
        """Apply changed settings. Active attempts go on; the buffer is handed back if nothing may be claimed."""
        self.info, self._config = self._operator_settings.info, self._operator_settings.config
        at_once = bool(self.active) or not self._stopping  # an idle worker is gone before anybody could see it stop
        self._heartbeat.change(self.info, self._config.heartbeat, at_once=at_once)
        self._executor.grow(self.info)
        self.rest.wake()
        if not self._operator_settings.may_claim:
            self._hand_back_buffer()
        if self._operator_settings.asked_to_stop:
            self.asked_to_stop()

    def serve(self, queue: str, jobs: Mapping[str, int]) -> None:
        """Take runs from this queue, too, from now on."""
        self._jobs.add(jobs)
        self._operator_settings.add_queue(queue, jobs)
        self._apply_settings()

    def _lost(self, run_id: str) -> None:
        attempt = self.active.get(run_id)
        if attempt is not None and attempt.finished:
            return
        if attempt is not None:
            log.warning("run %s: the lease is lost, the attempt is stopped", run_id, extra=RunFields(attempt.claim))
            counters = self._meters.of[attempt.claim.run_job, attempt.claim.queue]
            counters.lost.add(not attempt.lost)  # the next heartbeat may report the same loss
            self._executor.lose(attempt)
        elif (claim := self._buffer.take(run_id)) is not None:
            self._meters.of[claim.run_job, claim.queue].lost.add()
            self._release(run_id, self.held[run_id])

    def _refused(self, run_id: str, fence: int) -> None:
        if self.held.get(run_id) == fence:
            self._lost(run_id)

    def _hand_back_buffer(self) -> None:
        while self._buffer:
            self._reporter.add(self._reports.hand_back(self._buffer.popleft()))

    def _hand_back_limited(self) -> None:
        """Hand back what holds slots of limits in vain: the runs before it take far longer than those before them."""
        for claim in [claim for claim in self._buffer if claim.limited]:
            self._buffer.remove(claim)
            self._reporter.add(self._reports.hand_back(claim))

    def _release(self, run_id: str, fence: int) -> None:
        if self.held.get(run_id) == fence:
            del self.held[run_id]
            if self._in_order.suspects.release(run_id, fence):
                self._in_order.look_soon()
                self.rest.wake()
