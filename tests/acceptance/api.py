"""A real server on a fresh database, asked over HTTP, and a worker beside it that has no code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.processes.rota_process import Processes, RotaProcess
from tests.support.servers.ports import free_port
from tests.support.wait import PATIENCE, wait_for


class Api:
    """The API of a server, whose answers are JSON."""

    def __init__(self, address: str, processes: Processes, environment: dict[str, str]) -> None:
        self._address = f"{address}/api/v1"
        self._processes = processes
        self._environment = environment

    @property
    def healthy(self) -> str:
        """Return an address that answers 200."""
        return self._address.replace("/api/v1", "/healthz")

    def ask(self, method: str, path: str, body: object = None) -> httpx2.Response:
        return httpx2.request(method, f"{self._address}{path}", json=body, timeout=PATIENCE)

    def get(self, path: str) -> Any:
        return self.ask("GET", path).json()

    def post(self, path: str, body: object = None, status: int = 200) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def worker(self) -> RotaProcess:
        """Start a worker without a module: HTTP jobs and commands need no code."""
        return self._processes.rota("worker", environment=self._environment).until_said(" runs ")


@contextmanager
def serving(database_url: str, folder: Path) -> Iterator[Api]:
    port = free_port()
    environment = {"ROTA_DATABASE_URL": database_url, "ROTA_POLL": "0.2s", "ROTA_HTTP_ALLOW": "127.0.0.1"}
    with Processes(folder) as processes:
        server = processes.rota("server", "--port", str(port), environment=environment)
        api = Api(f"http://127.0.0.1:{port}", processes, environment)

        def answers() -> bool:
            assert server.exit_code is None, server.log
            try:
                return api.ask("GET", "/jobs").status_code == 200
            except httpx2.HTTPError:
                return False

        wait_for(answers)
        yield api
