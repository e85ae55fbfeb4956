"""Build, start and stop the loops and the worker of one process."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from datetime import timedelta
from operator import attrgetter

import msgspec

from rota.config import Config
from rota.core.alerts.notifications import JOBS, QUEUE
from rota.core.workers.requirements import labels_of
from rota.core.workers.worker import Queues, WorkerInfo, uneven, weights_of
from rota.engine.idle_look import Held, IdleLook
from rota.engine.jobs.notify import Deliveries
from rota.engine.loop import Loop
from rota.engine.loops.chart_recorder import ChartRecorder
from rota.engine.loops.declare import declare_notifications, declare_quotas, declare_schedules
from rota.engine.loops.expectation_watcher import ExpectationWatcher
from rota.engine.loops.janitor import Janitor
from rota.engine.loops.messenger import Messenger
from rota.engine.loops.planner import Planner
from rota.engine.loops.promoter import Promoter
from rota.engine.loops.reaper import Reaper
from rota.engine.loops.replica_conductor import ReplicaConductor
from rota.engine.observability.meters import Meters
from rota.engine.observability.repeated_errors import RepeatedErrors
from rota.engine.worker.heartbeat import HeartbeatThread
from rota.engine.worker.lifetime import Lifetime
from rota.engine.worker.worker import Worker
from rota.registry.jobs import Registry
from rota.store import Store
from rota.store.alerts.emit_signal import MESSENGER
from rota.store.schedules.schedule_operations import PLANNER
from rota.store.workers.due_work import DueWork
from rota.store.workers.replicas import CONDUCTOR
from rota.values.names import checked_name
from rota.version import __version__

_STIRRED = 0.05
"""Seconds from a hint to the promoter's look, unless it was idle: on a busy queue, hints come all the time."""

log = logging.getLogger("rota.engine")


def worker_info(
    registry: Registry, config: Config, name: str | None, queues: Queues | None, boot: str | None = None
) -> WorkerInfo:
    """Return the identity of a new worker.

    The id is name and boot: a second worker of the same name, or the same one restarted, is another worker.
    """
    name = checked_name(name or socket.gethostname(), "worker name")
    weights = weights_of(queues) if queues else dict.fromkeys(registry.queues(), 1)
    return WorkerInfo(
        id=f"{name}@{boot or secrets.token_hex(6)}",
        name=name,
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        queues=tuple(weights),
        weights=uneven(weights),
        jobs=tuple(registry.known()),
        slots=config.concurrency,
        labels=labels_of(config.worker_labels),
        app_version=config.worker_version or __version__,
    )


class Simulated(msgspec.Struct, frozen=True):
    """Replacements for a simulation, in which nothing is random and there are no threads."""

    boot: str
    heartbeat: type[HeartbeatThread]


class Engine:
    """The loops of one process and, with `working`, its worker."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        config: Config,
        *,
        name: str | None = None,
        queues: Queues | None = None,
        working: bool = True,
        meters: Meters | None = None,
        simulated: Simulated | None = None,
    ) -> None:
        self._store = store
        self._registry = registry
        meters = meters or Meters()
        self.worker: Worker | None = None
        if working:
            info = worker_info(registry, config, name, queues, simulated.boot if simulated else None)
            heartbeat = simulated.heartbeat if simulated else HeartbeatThread
            self.worker = Worker(store, registry, info, config, heartbeat, meters)
            self.worker.asked_to_stop = self._stop_worker
            self.worker.rate_shut = self._rate_shut
        registry.builtin.update(Deliveries(store, config).handlers())
        self._serves_notifications = not queues or QUEUE in queues
        self._worker_parts = (store, config, name, meters)
        self.stop_asked = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._accepted: asyncio.Task[None] | None = None
        self._poll = config.poll
        self._lifetime: Lifetime | None = None
        clock = store.clock
        self._promoter = Loop("promoter", Promoter(store, config.poll, meters, self._rate_opened), meters, clock)
        self._planning = Planner(store, registry.schedules.providers, config.poll, meters)
        self._planner = Loop("planner", self._planning, meters, clock)
        self._conductor = Loop("conductor", ReplicaConductor(store, config.poll, meters), meters, clock)
        self._messenger = Loop("messenger", Messenger(store, config.poll, self._serve_notifications), meters, clock)
        self._reaper = Loop("reaper", Reaper(store, config.reaper, config.heartbeat, meters), meters, clock)
        self._watchman = Loop("watchman", ExpectationWatcher(store, config.expect), meters, clock)
        self._loops = [
            self._planner,
            self._promoter,
            self._conductor,
            self._messenger,
            self._reaper,
            Loop("janitor", Janitor(store, config.janitor, meters), meters, clock),
            self._watchman,
        ]
        self._looking = IdleLook(
            store, config.poll, config.lease, self._queues, registry.schedules.providers, self._held, meters
        )
        self._idle_look = Loop("idle look", self._looking, meters, clock)
        self._recorder: ChartRecorder | None = None
        if simulated is None:  # charts decide nothing; in a simulation they would only cost time
            source = self.worker.info.id if self.worker else f"{socket.gethostname()}@{secrets.token_hex(6)}"
            self._recorder = ChartRecorder(store, meters, source)
            self._loops.append(Loop("recorder", self._recorder, meters, clock))
        self._unlisten: Callable[[], None] | None = None

    async def start(self) -> None:
        """Start; in a copy of a database, as soon as somebody has accepted it: until then the process only waits."""
        if await self._store.standing.is_held():
            self._accepted = asyncio.create_task(self._start_when_accepted())
            return
        await self._declare()
        await self._begin()

    async def _start_when_accepted(self) -> None:
        errors = RepeatedErrors(log, "waiting for the database to be accepted", self._store.clock)
        while True:
            try:
                if not await self._store.standing.is_held():
                    await self._declare()
                    break
            except Exception as error:
                errors.failed(error)
            await asyncio.sleep(self._poll.total_seconds())
        await self._begin()

    async def _declare(self) -> None:
        await self._store.save_jobs(self._registry.definitions())
        await declare_schedules(self._store, self._registry.schedules, self._registry.schedules.providers)
        await declare_quotas(self._store, self._registry.quotas)
        await declare_notifications(self._store, self._registry.notifications)

    async def _begin(self) -> None:
        if self.worker:
            self._lifetime = Lifetime(self._registry, self._stop_worker)
            self.worker.use(await self._lifetime.enter())
        for loop in self._loops:
            loop.start()
        self._unlisten = self._store.listen(self._hinted)
        if self.worker:
            await self.worker.start()
        self._idle_look.start()

    def _queues(self) -> Sequence[str]:
        return self.worker.info.queues if self.worker else ()

    def _held(self) -> list[Held]:
        """Name whoever need not step while nothing is due. The janitor and the recorder go by the clock."""
        loops = {
            "planner": self._planner,
            "promoter": self._promoter,
            "conductor": self._conductor,
            "reaper": self._reaper,
            "watchman": self._watchman,
        }
        held = [Held(loop.rest, attrgetter(name), loop.note_step) for name, loop in loops.items()]
        held.append(Held(self._messenger.rest, self._messages_due, self._messenger.note_step))
        if self.worker:
            held.append(Held(self.worker.rest, self.worker.due_in))
        return held

    def _messages_due(self, work: DueWork) -> int | None:
        """Let the messenger notice the first notification, too: rota's own queue is served from then on."""
        return 0 if work.notifications and self._serves_notifications else work.messenger

    def _rate_shut(self) -> None:
        """Wake the promoter, which waits for the moment when the rate opens again."""
        self._promoter.wake()

    def _rate_opened(self) -> None:
        if self.worker:
            self.worker.wake()

    def _hinted(self, queue: str | None) -> None:
        """Wake the loops that a notification from the database concerns; None concerns all.

        On SQLite, None comes after every commit of another process: who had nothing to do waits for the look.
        """
        self._idle_look.rest.shorten(self._looking.after_hints.total_seconds())
        if queue is None:
            self._idle_look.wake()
            for loop in (self._promoter, self._planner, self._conductor, self._messenger):
                loop.rest.hint()
            return
        self._promoter.rest.stir(_STIRRED)
        if queue == PLANNER:
            self._planner.wake()
        if queue == CONDUCTOR:
            self._conductor.wake()
        if queue == MESSENGER:
            self._messenger.wake()

    def _serve_notifications(self) -> None:
        """Let the worker take rota's own queue, once there are notifications to send.

        Nobody looks at that queue before. A worker that was given queues takes it only if it is among them.
        """
        if not self._serves_notifications:
            return
        self._serves_notifications = False
        if self.worker is None:
            self.worker = self._notification_worker()
            self._starting = asyncio.create_task(self.worker.start())
        self.worker.serve(QUEUE, {job.name: job.version for job in JOBS})

    def _notification_worker(self) -> Worker:
        """Return a worker that only sends notifications, for a server that runs no jobs."""
        store, config, name, meters = self._worker_parts
        registry = Registry()
        registry.builtin = self._registry.builtin
        worker = Worker(store, registry, worker_info(registry, config, name, [QUEUE]), config, meters=meters)
        worker.asked_to_stop = self._stop_worker
        return worker

    def _stop_worker(self) -> None:
        """Stop the worker at an operator's request, with the usual grace. The other loops go on."""
        if self.worker and self._ending is None:
            self._ending = asyncio.create_task(self.worker.stop())
        self.stop_asked.set()

    async def stop(self, grace: timedelta | None = None) -> None:
        if self._accepted and not self._accepted.done():
            self._accepted.cancel()
            await asyncio.wait([self._accepted])
        if self._starting:
            await self._starting
        if self.worker:
            await self.worker.stop(grace)
        if self._ending:
            await self._ending
        if self._lifetime:
            await self._lifetime.leave()
        if self._unlisten:
            self._unlisten()
        await self._idle_look.stop()
        for loop in self._loops:
            await loop.stop()
        await self._planning.close()
        if self._recorder:
            await self._recorder.close()
