"""Harness for tests without an event loop: the same verbs, blocking."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn, Self, TypeVar

from rota.app import Rota
from rota.client.blocking import BlockingClient, LoopThread
from rota.config import Config
from rota.core.runs.run import Attempt, Enqueued, Run
from rota.core.states import RunState
from rota.job import Job
from rota.store import Extended
from rota.testing.assertions.times import Moment
from rota.testing.clock import ManualClock
from rota.testing.harness.harness import Harness
from rota.testing.harness.manual_worker import HandWorker, RunReference
from rota.values.durations import Duration

T = TypeVar("T")


class BlockingHarness:
    """Blocking harness, as returned by `Harness.blocking(app)`; handlers run on its own event loop, or in threads.

    `inner` is the `Harness` itself. Use `wait` for what has no verb here: `harness.wait(harness.inner.janitor.step())`.
    """

    def __init__(self, inner: Harness) -> None:
        self.inner = inner
        self._loop: LoopThread | None = None

    def __enter__(self) -> Self:
        self._loop = LoopThread()
        try:
            self.wait(self.inner.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.wait(self.inner.__aexit__(None, None, None))
        finally:
            self._stop()

    def _stop(self) -> None:
        assert self._loop is not None
        self._loop.stop()
        self._loop = None

    def wait(self, act: Coroutine[Any, Any, T]) -> T:
        """Run `act` on the harness's own event loop and return its result."""
        assert self._loop is not None, "use it inside its block"
        return self._loop.call(act)

    @property
    def app(self) -> Rota:
        return self.inner.app

    @property
    def clock(self) -> ManualClock:
        return self.inner.clock

    @property
    def config(self) -> Config:
        return self.inner.config

    @property
    def lease(self) -> timedelta:
        return self.inner.lease

    @property
    def left_over(self) -> list[str]:
        return self.inner.left_over

    @property
    def client(self) -> BlockingClient:
        return self.app.blocking

    def declare(self, name: str, /, **options: Any) -> None:
        self.wait(self.inner.declare(name, **options))

    def enqueue(
        self, job: str | Job[..., Any], options: Mapping[str, Any] | None = None, /, **payload: Any
    ) -> Enqueued:
        return self.wait(self.inner.enqueue(job, options, **payload))

    def worker(
        self,
        name: str = "worker",
        *,
        queues: Sequence[str] | None = None,
        labels: Sequence[str] = (),
        version: str | None = None,
    ) -> BlockingHandWorker:
        return BlockingHandWorker(self, self.inner.worker(name, queues=queues, labels=labels, version=version))

    def drain(self) -> Sequence[Run]:
        return self.wait(self.inner.drain())

    def pass_time(self, by: Duration | None = None, *, until: Moment | None = None, zone: str = "UTC") -> Sequence[Run]:
        return self.wait(self.inner.pass_time(by, until=until, zone=zone))

    def reap(self) -> None:
        """Take away the leases that are over."""
        self.wait(self.inner.reaper.step())

    def run(self, run: RunReference) -> Run:
        return self.wait(self.inner.run(run))

    def state(self, run: RunReference) -> RunState:
        return self.wait(self.inner.state(run))

    def attempts(self, run: RunReference) -> Sequence[Attempt]:
        return self.wait(self.inner.attempts(run))

    def cancel(self, run: RunReference) -> Run:
        return self.wait(self.inner.cancel(run))

    def crash(self, *_: object, **__: object) -> NoReturn:
        self.inner.crash()

    def lose_lease(self, *_: object, **__: object) -> None:
        self.inner.lose_lease()

    @contextmanager
    def database_away(self) -> Iterator[None]:
        with self.inner.database_away():
            yield


class BlockingHandWorker:
    """Blocking form of a `HandWorker`, which is `inner`."""

    def __init__(self, harness: BlockingHarness, inner: HandWorker) -> None:
        self.inner = inner
        self._wait = harness.wait

    @property
    def id(self) -> str:
        return self.inner.id

    def claim(self, wanted: int = 1) -> BlockingHandWorker:
        self._wait(self.inner.claim(wanted))
        return self

    def fence(self, run: RunReference | None = None) -> int:
        return self.inner.fence(run)

    def heartbeat(self) -> Extended:
        return self._wait(self.inner.heartbeat())

    def finish(self, run: RunReference | None = None, result: Any = None) -> None:
        self._wait(self.inner.finish(run, result))

    def fail(self, run: RunReference | None = None, error: BaseException | None = None) -> None:
        self._wait(self.inner.fail(run, error))

    def step(self, id: str, result: Any = None, run: RunReference | None = None) -> None:
        self._wait(self.inner.step(id, result, run))

    def hand_back(self, run: RunReference | None = None, *, began: bool = False) -> None:
        self._wait(self.inner.hand_back(run, began=began))
