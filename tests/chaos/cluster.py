"""What a chaos test breaks: a database, and processes that are restarted when they end, each behind a proxy."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec

from tests.chaos.faults import GRACE, HEARTBEAT, LEASE, POSTGRES, REAPER
from tests.chaos.ledger import FOLDER
from tests.support.databases.network_proxy import Proxy, proxy_to
from tests.support.databases.postgres import PostgresCluster, PostgresStandby
from tests.support.processes.rota_process import Processes, RotaProcess
from tests.support.servers.ports import free_port

APP = "tests.chaos.jobs:app"
SETTINGS = {
    "ROTA_LEASE": f"{LEASE}s",
    "ROTA_HEARTBEAT": f"{HEARTBEAT}s",
    "ROTA_REAPER": f"{REAPER}s",
    "ROTA_POLL": "500ms",
    "ROTA_DEADLINE": "2s",
    "ROTA_SHUTDOWN_GRACE": f"{GRACE}s",
}
UNAVAILABLE = 69
PATIENCE = 120.0
"""Seconds, that a busy machine may take to start or to end everything."""


class Plan(msgspec.Struct, frozen=True):
    """Callers enqueue over HTTP, producers with a client of their own; `rest`: between two orders, on average."""

    database: str
    seed: int
    seconds: float
    workers: int = 3
    servers: int = 2
    callers: int = 1
    producers: int = 1
    calm: float = 4.0
    gap: float = 1.5
    rest: float = 0.4
    concurrency: int = 8
    patience: float = 90.0

    @property
    def targets(self) -> list[str]:
        named = [("worker", self.workers), ("server", self.servers)]
        named += [("caller", self.callers), ("producer", self.producers)]
        names = [f"{kind}-{number}" for kind, count in named for number in range(1, count + 1)]
        return [*names, POSTGRES] if self.database == POSTGRES else names


class Life(msgspec.Struct):
    """Of one process of a target: how it ended, and with which code, unless it lives."""

    target: str
    pid: int
    since: float
    until: float | None = None
    end: str = ""
    code: int | None = None
    asked: float | None = None
    """When it was told to stop."""


class Target:
    """Has one process at a time. Faults of a track come one after the other."""

    def __init__(self, name: str, start: Callable[[], RotaProcess], ready: str, proxy: Proxy | None) -> None:
        self.name = name
        self.proxy = proxy
        self.lives: list[Life] = []
        self.locks = {"process": threading.Lock(), "network": threading.Lock()}
        self._start = start
        self._ready = ready
        self._process: RotaProcess | None = None

    @property
    def process(self) -> RotaProcess:
        assert self._process is not None
        return self._process

    def start(self) -> None:
        self._process = self._start()
        self.lives.append(Life(self.name, self._process.pid, time.monotonic()))

    def is_ready(self) -> bool:
        return self._ready in self.process.log

    def kept_ready(self) -> bool:
        """For whoever has its lock, so that nobody else looks after it."""
        self.look_after()
        return self.is_ready()

    def look_after(self) -> None:
        """If it has ended by itself, it is started again. One that finds no database at first may end and say so."""
        code = self.process.exit_code
        if code is not None and self.lives[-1].until is None:
            self._over("could not begin" if self._could_not_begin(code) else "died", code)
            time.sleep(0.2)
            self.start()

    def _could_not_begin(self, code: int) -> bool:
        return code == UNAVAILABLE and self._ready not in self.process.log

    def kill(self) -> None:
        self.process.kill()
        self._over("killed", self.process.exit_code)

    def stop(self, seconds: float = PATIENCE) -> None:
        self.lives[-1].asked = time.monotonic()
        self.process.terminate()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            self._over("stopped", code)

    def _over(self, end: str, code: int | None) -> None:
        life = self.lives[-1]
        if life.until is None:
            life.until, life.end, life.code = time.monotonic(), end, code


class Cluster:
    """Everything is started when the block begins, and gone when it ends.

    Clients use `url`, which nothing breaks, and which leads to whichever server is the primary.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.postgres: PostgresCluster | None = None
        self.targets: dict[str, Target] = {}
        self.servers: dict[str, str] = {}
        self.locks = {"database": threading.Lock()}
        self._stack = ExitStack()
        self._proxies: list[Proxy] = []
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def answers(self) -> Path:
        return self.folder / "answers"

    def __enter__(self) -> Self:
        for folder in (self.ledger, self.answers, self.logs):
            folder.mkdir(parents=True)
        if self.plan.database == POSTGRES:
            # Without fsync: nothing here ends the machine, and recovery takes a moment instead of many seconds.
            self.postgres = self._stack.enter_context(PostgresCluster())
            self._direct_url = self.postgres.create_database()
            self.url = self._proxy_to(self._direct_url).url
        else:
            self.url = f"sqlite:///{self.folder / 'chaos.db'}"
        self._processes = self._stack.enter_context(Processes(self.logs, tells=False))
        return self

    def __exit__(self, *_: object) -> None:
        self.leave_alone()
        self._stack.close()

    def _proxy_to(self, url: str) -> Proxy:
        proxy = self._stack.enter_context(proxy_to(url))
        self._proxies.append(proxy)
        return proxy

    def fail_over(self) -> None:
        """Kill the primary, and promote a synchronous standby: nothing that was acknowledged is lost."""
        assert self.postgres is not None
        primary, standby = self.postgres, self._stack.enter_context(PostgresStandby(self.postgres))
        primary.require_synchronous_standby()
        standby.wait_for_replay()
        primary.kill9()
        self._promote(standby)

    def fall_behind(self) -> tuple[PostgresStandby, float]:
        """Make an asynchronous standby and stop it; return since when it misses what is committed."""
        assert self.postgres is not None
        standby = self._stack.enter_context(PostgresStandby(self.postgres))
        # What was acknowledged before this instant is in what the standby waits for now.
        since = time.monotonic()
        standby.wait_for_replay()
        standby.stop("fast")
        return standby, since

    def promote_behind(self, standby: PostgresStandby) -> float:
        """Kill the primary, and promote the standby that has missed its last commits; return until when it missed."""
        assert self.postgres is not None
        self.postgres.kill9()
        until = time.monotonic()
        standby.start()
        self._promote(standby)
        return until

    def _promote(self, standby: PostgresStandby) -> None:
        standby.promote()
        self.postgres = standby
        for proxy in self._proxies:
            proxy.lead_to(standby.url)

    def _keep(self) -> None:
        """Whoever has ended and was not to is started again, as services are."""
        while not self._over.wait(0.2):
            for target in self.targets.values():
                if target.locks["process"].acquire(blocking=False):
                    try:
                        target.look_after()
                    finally:
                        target.locks["process"].release()

    def leave_alone(self) -> None:
        """From now on nobody is started again."""
        self._over.set()
        if self._keeper.is_alive():
            self._keeper.join()

    def start(self) -> None:
        """On a database that has its tables."""
        self.servers = {
            name: f"http://127.0.0.1:{free_port()}" for name in self.plan.targets if name.startswith("server")
        }
        for name in self.plan.targets:
            if name != POSTGRES:
                self.targets[name] = self._target(name)
                self.targets[name].start()
        self._keeper.start()
        for target in self.await_ready(PATIENCE):
            raise RuntimeError(f"{target.name} did not start:\n{target.process.log}")

    def _target(self, name: str) -> Target:
        proxy = self._proxy_to(self._direct_url) if self.postgres else None
        environment = {
            **SETTINGS,
            "ROTA_DATABASE_URL": proxy.url if proxy else self.url,
            FOLDER: str(self.ledger),
        }
        if name.startswith("worker"):
            flags = ["--name", name, "--concurrency", str(self.plan.concurrency)]
            return Target(name, self._rota(environment, "worker", *flags, APP), f" runs {APP}", proxy)
        if name.startswith("server"):
            port = self.servers[name].rpartition(":")[2]
            return Target(name, self._rota(environment, "server", "--port", port, APP), self.servers[name], proxy)
        servers = list(self.servers.values()) if name.startswith("caller") else []
        path = self.answers / f"{name}.lines"
        arguments = ["-m", "tests.chaos.producer", name, str(self.plan.seed), str(path), str(self.plan.rest), *servers]
        return Target(name, lambda: self._processes.python(*arguments, environment=environment), "produces", proxy)

    def _rota(self, environment: Mapping[str, str], *arguments: str) -> Callable[[], RotaProcess]:
        return lambda: self._processes.rota(*arguments, environment=environment)

    def await_ready(self, seconds: float) -> list[Target]:
        """Those that have not come to work after so long."""
        waiting = list(self.targets.values())
        deadline = time.monotonic() + seconds
        while (waiting := [target for target in waiting if not target.is_ready()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        return waiting

    @property
    def lives(self) -> list[Life]:
        return [life for target in self.targets.values() for life in target.lives]

    def of_kind(self, *kinds: str) -> list[Target]:
        return [target for name, target in self.targets.items() if name.startswith(kinds)]
