"""State and settings of a worker, which operators change at run time: may it claim, queues, slots, intervals."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec

from rota.config import Config
from rota.core.workers.worker import OperatorRequest, Pace, WorkerInfo, WorkerSettings, WorkerState, read_asked, uneven
from rota.engine.worker.appetite import ClaimPositions
from rota.errors import Invalid

log = logging.getLogger("rota.worker")

_LOG_LINES = {
    WorkerState.WORKING: "asked to work",
    WorkerState.DRAINING: "asked to drain: claiming nothing more, running handlers may finish",
    WorkerState.STOPPING: "asked to stop",
}


class OperatorSettings:
    """The only place where a worker's `info` and `config` change.

    Claims and heartbeats read them each time, so a change applies from the next one on. Attempts that run are not
    affected.
    """

    def __init__(self, info: WorkerInfo, config: Config) -> None:
        self._started_as = info
        self._started_with = config
        self._stopping = False
        self._applied: str | None = None
        self._settings = WorkerSettings()
        self.config = config
        self.info = msgspec.structs.replace(info, pace=_pace(config))
        self.positions = ClaimPositions(list(info.queues), info.weights)

    @property
    def may_claim(self) -> bool:
        return self.info.state is WorkerState.WORKING

    @property
    def asked_to_stop(self) -> bool:
        return self.info.state is WorkerState.STOPPING and not self._stopping

    def stop(self) -> None:
        """Enter the state `stopping`, from which there is no way back."""
        self._stopping = True
        self.info = msgspec.structs.replace(self.info, state=WorkerState.STOPPING)

    def add_queue(self, queue: str, jobs: Iterable[str]) -> None:
        """Add a queue and its jobs as if the worker had been started with them.

        Queues set by an operator stay as they are.
        """
        self._started_as = _with(self._started_as, (queue,), jobs)
        self.info = _with(self.info, (queue,) if self._settings.queues is None else (), jobs)
        self.positions = ClaimPositions(list(self.info.queues), self.info.weights)

    def set_jobs(self, jobs: tuple[str, ...]) -> WorkerInfo:
        """Replace the jobs that the worker can run; return the new info."""
        self.info = msgspec.structs.replace(self.info, jobs=jobs)
        return self.info

    def update(self, text: str | None) -> bool:
        """Apply the operators' requests that a heartbeat brought; return whether they were new.

        Each heartbeat brings all of them, so a lost answer needs no repetition.
        """
        if text is None or text == self._applied:
            return False
        self._applied = text
        try:
            self._apply(read_asked(text), text)
        except (Invalid, msgspec.DecodeError) as error:  # written by a newer rota, or impossible with our lease
            log.warning("cannot apply the settings that an operator requested: %s", error)
            return False
        return True

    def _apply(self, request: OperatorRequest, text: str) -> None:
        settings, before = request.settings, self.info
        values = {"concurrency": settings.slots, "heartbeat": settings.heartbeat, "poll": settings.poll}
        changes = {name: value for name, value in values.items() if value is not None}
        self.config = msgspec.structs.replace(self._started_with, **changes)
        queues = settings.queues
        self.info = msgspec.structs.replace(
            before,
            queues=self._started_as.queues if queues is None else tuple(queues),
            weights=self._started_as.weights if queues is None else uneven(queues),
            slots=self.config.concurrency,
            pace=_pace(self.config),
            state=WorkerState.STOPPING if self._stopping else request.state,
            asked=text,
        )
        if (self.info.queues, self.info.weights) != (before.queues, before.weights):
            self.positions = ClaimPositions(list(self.info.queues), self.info.weights)
        if self.info.state is not before.state:
            log.info("%s", _LOG_LINES[self.info.state])
        if settings != self._settings:
            self._settings = settings
            log.info("settings changed by an operator: %s", msgspec.json.encode(settings).decode())


def _with(info: WorkerInfo, queues: tuple[str, ...], jobs: Iterable[str]) -> WorkerInfo:
    return msgspec.structs.replace(
        info, queues=tuple(dict.fromkeys((*info.queues, *queues))), jobs=tuple(dict.fromkeys((*info.jobs, *jobs)))
    )


def _pace(config: Config) -> Pace:
    return Pace(heartbeat=config.heartbeat, poll=config.poll, lease=config.lease)
