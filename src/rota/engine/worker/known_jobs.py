"""Jobs that a worker can run: those of its code, and data jobs, which may change while it works."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import assert_never

import msgspec

from rota.config import Config
from rota.core.jobs.job import JobDefinition, JobKind, kind_of
from rota.engine.jobs.data_jobs import handler_of
from rota.engine.jobs.http_client import can_send
from rota.errors import RotaError
from rota.registry.jobs import Handler, Registry
from rota.store import Store
from rota.store.jobs.data_jobs import Seen

log = logging.getLogger("rota.worker")


class KnownJobs:
    """Mapping of job names to their newest versions, kept up to date.

    `known` stays the same dict object for the worker's whole life: claims hold a reference to it and see changes.
    """

    def __init__(self, store: Store, registry: Registry, config: Config) -> None:
        self._store = store
        self._registry = registry
        self._executes = config.enable_command
        self._sends: bool | None = None
        self._every = config.poll.total_seconds()
        self._look_at = 0.0
        self.seen: Seen = (0, 0, 0)
        self._handlers: dict[str, dict[int, Handler]] = {}
        self._own = {name: registry.newest[name].kind for name in registry.known()}
        self._more: dict[str, int] = {}
        self.known: dict[str, int] = {}
        self._list()

    def add(self, jobs: Mapping[str, int]) -> None:
        """Add built-in jobs that no code declares."""
        self._more.update(jobs)
        self._list()

    def due(self, now: float) -> bool:
        return now >= self._look_at

    async def refresh(self, now: float) -> bool:
        """Read changes of data jobs; return whether `known` changed. Usually this is one cheap query."""
        self._look_at = now + self._every
        held = {(name, version) for name, versions in self._handlers.items() for version in versions}
        changes = await self._store.data_jobs.changes(self.seen, held)
        if changes is None:
            return False
        self.seen = changes.seen
        for text in changes.definitions:
            self._learn(text)
        self._handlers = {name: self._handlers[name] for name in changes.names if name in self._handlers}
        before = dict(self.known)
        self._list()
        return self.known != before

    def for_run(self, job: str, version: int) -> Handler | None:
        return self._handlers[job].get(version) if job in self._handlers else self._registry.for_run(job, version)

    def _learn(self, text: str) -> None:
        """Add the data job that `text` defines.

        A definition that a newer rota wrote may be unreadable: skip only that job.
        """
        try:
            definition = msgspec.json.decode(text, type=JobDefinition)
            if self._runs(kind_of(definition.kind)) and definition.name not in self._registry.newest:
                self._handlers.setdefault(definition.name, {})[definition.version] = handler_of(definition)
        except (msgspec.DecodeError, RotaError) as error:
            log.warning("skipping a data job that this worker cannot run: %s", error)

    def _list(self) -> None:
        declared = self._registry.known().items()
        own = {name: version for name, version in declared if self._runs(self._own.get(name, JobKind.PYTHON))}
        data = {name: max(versions) for name, versions in self._handlers.items() if versions}
        self.known.clear()
        self.known.update(data | own | self._more)

    def _runs(self, kind: JobKind | None) -> bool:
        """Return whether this worker runs jobs of a kind, unless there is no handler for them."""
        match kind:
            case JobKind.PYTHON | JobKind.PIPELINE | None:  # of a pipeline, older versions that were functions
                return True
            case JobKind.HTTP:
                return self._can_send()
            case JobKind.COMMAND:
                return self._executes
            case JobKind.EXTERNAL:
                return False
            case _:
                assert_never(kind)

    def _can_send(self) -> bool:
        if self._sends is None:
            self._sends = can_send()
            if not self._sends:
                log.warning("skipping HTTP jobs: aiohttp is not installed (pip install 'rota[http]')")
        return self._sends
