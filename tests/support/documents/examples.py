"""Copy an example and start it with the commands of its README."""

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any, Self

import httpx2

from tests.support.processes.rota_process import PATIENCE, ROOT, Processes, RotaProcess, environment_with, wait_for
from tests.support.servers.ports import free_port

CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
LEFT_BY_A_TRIAL = ignore_patterns("__pycache__", "*.db*", "*.sqlite3*")


class Example:
    """`with Example("flask", tmp_path, {…}) as service:` ends all that it started with the block."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder / name
        copytree(ROOT / "examples" / name, self.folder, ignore=LEFT_BY_A_TRIAL)
        self.port = free_port()
        self._said = "".join(CONSOLE.findall((self.folder / "README.md").read_text())).splitlines()
        self._processes = Processes(self.folder)
        self._environment = environment or {}

    def __enter__(self) -> Self:
        self._processes.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._processes.__exit__(*error)

    def _command(self, words: str) -> list[str]:
        """The one command of the README with these words, on a port of our own."""
        (command,) = [line for line in self._said if words in line]
        program, *rest = shlex.split(command.replace("8000", str(self.port)))
        how = {"python": [], "rota": ["-m", "rota"], "uvicorn": ["-m", "uvicorn"], "flask": ["-m", "flask"]}[program]
        return [*how, *rest]

    def start(self, words: str, *more: str) -> RotaProcess:
        return self._processes.python(*self._command(words), *more, environment=self._environment)

    def run(self, words: str, *more: str) -> str:
        """Its output."""
        done = subprocess.run(
            [sys.executable, *self._command(words), *more],
            cwd=self.folder,
            env=environment_with(self._environment),
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, method: str, path: str, **how: Any) -> httpx2.Response:
        """Until it is up."""
        for _ in range(1_000):
            try:
                return httpx2.request(method, f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE, **how)
            except httpx2.ConnectError:
                time.sleep(0.03)
        raise AssertionError("nobody listens")

    def until_told(self, path: str, name: str) -> Any:
        """Ask for an object again until it has a value for that name."""
        found: list[Any] = []

        def told() -> bool:
            found.append(self.ask("GET", path).json().get(name))
            return found[-1] is not None

        wait_for(told)
        return found[-1]
