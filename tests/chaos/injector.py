"""How each fault is done to its target and undone again, on time, and what came of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import cast

import msgspec

from tests.chaos.cluster import PATIENCE, Cluster, Target
from tests.chaos.faults import POSTGRES, Fault
from tests.support.databases.network_proxy import Loss, Proxy
from tests.support.databases.postgres import PostgresCluster
from tests.support.wait import wait_for


class Stroke(msgspec.Struct):
    """A fault as it happened: by the monotonic clock, from when until when.

    `lost`: since when and until when the database lost what it was told.
    """

    fault: Fault
    since: float
    until: float = 0.0
    note: str = ""
    lost: tuple[float, float] | None = None


class Injector:
    """Every fault has a thread of its own: one that takes long delays no other, but on the same track of a target."""

    def __init__(self, cluster: Cluster, faults: Sequence[Fault]) -> None:
        self.strokes: list[Stroke] = []
        self.errors: list[str] = []
        self.began_at = 0.0
        self._cluster = cluster
        self._faults = faults
        self._thread = _thread(self._strike_all)

    def begin(self) -> None:
        self.began_at = time.monotonic()
        self._thread.start()

    def heal(self) -> None:
        """Returns when every fault is over."""
        self._thread.join()
        self.strokes.sort(key=lambda stroke: stroke.since)

    def _strike_all(self) -> None:
        threads = []
        for fault in self._faults:
            time.sleep(max(0.0, self.began_at + fault.at - time.monotonic()))
            threads.append(_thread(partial(self._strike, fault)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _strike(self, fault: Fault) -> None:
        target = self._cluster.targets.get(fault.target)
        locks = target.locks if target else self._cluster.locks
        with locks[fault.track]:
            stroke = Stroke(fault, time.monotonic())
            try:
                with self._done(fault, target, stroke):
                    time.sleep(fault.seconds)
            except Exception as error:
                self.errors.append(f"{fault}: {error!r}")
            stroke.until = time.monotonic()
            self.strokes.append(stroke)

    def _done(self, fault: Fault, target: Target | None, stroke: Stroke) -> AbstractContextManager[None]:
        if fault.target == POSTGRES:
            assert self._cluster.postgres is not None
            if fault.kind == "failover":
                return _failover(self._cluster)
            if fault.kind == "lose":
                return _lossy_failover(self._cluster, stroke)
            return _to_database(self._cluster.postgres, self._cluster.url, fault, stroke)
        assert target is not None
        if fault.track == "process":
            return _to_process(target, fault, stroke)
        assert target.proxy is not None
        return _to_network(target.proxy, fault, stroke)


def _thread(act: Callable[[], None]) -> threading.Thread:
    return threading.Thread(target=act, daemon=True)


@contextmanager
def _to_process(target: Target, fault: Fault, stroke: Stroke) -> Iterator[None]:
    if fault.kind == "pause":
        target.process.pause()
        try:
            yield
        finally:
            target.process.resume()
        return
    if fault.kind == "stop":
        wait_for(target.kept_ready, PATIENCE)  # one that has not begun yet cannot know how to stop
        target.stop()
        stroke.note = f"ended with {target.lives[-1].code}"
    else:
        target.kill()
    yield
    target.start()


@contextmanager
def _to_network(proxy: Proxy, fault: Fault, stroke: Stroke) -> Iterator[None]:
    match fault.kind:
        case "cut":
            proxy.cut()
        case "refuse":
            proxy.refusing = True
            proxy.cut()
        case "stall":
            proxy.stalling = True
            proxy.stall()
        case "slow":
            proxy.delay = int(fault.detail.split()[0]) / 1000
        case "deaf":
            proxy.swallows_notifications = True
        case "swallow":
            statement, loss = fault.detail.split(": ")
            proxy.lose_answer(statement, cast("Loss", loss))
    lost = proxy.lost_answers
    yield
    proxy.refusing = proxy.stalling = proxy.swallows_notifications = False
    proxy.delay = 0.0
    if fault.kind == "swallow":
        proxy.forget_loss()
        stroke.note = "an answer was lost" if proxy.lost_answers > lost else "there was none to lose"


@contextmanager
def _failover(cluster: Cluster) -> Iterator[None]:
    cluster.fail_over()
    yield


@contextmanager
def _lossy_failover(cluster: Cluster, stroke: Stroke) -> Iterator[None]:
    standby, lost_since = cluster.fall_behind()
    yield
    stroke.lost = lost_since, cluster.promote_behind(standby)
    stroke.note = f"what was committed in the last {stroke.lost[1] - stroke.lost[0]:.1f} s may be lost"


@contextmanager
def _to_database(postgres: PostgresCluster, url: str, fault: Fault, stroke: Stroke) -> Iterator[None]:
    match fault.kind:
        case "terminate":
            stroke.note = f"{postgres.terminate_backends(url)} backends"
        case "restart":
            postgres.stop("fast")
        case "crash":
            postgres.stop("immediate")
        case "kill9":
            postgres.kill9()
    yield
    postgres.start()
