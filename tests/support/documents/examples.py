"""Copy an example and start it with the commands of its README."""

import contextlib
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any, Self

import httpx2

from tests.support.processes.rota_process import ROOT, Processes, RotaProcess, environment_with
from tests.support.servers.ports import free_port
from tests.support.wait import PATIENCE, wait_for

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
        """Run a command and return its output."""
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
        """Request a URL, and repeat it until the server is up."""
        answers: list[httpx2.Response] = []

        def listens() -> bool:
            with contextlib.suppress(httpx2.ConnectError):
                url = f"http://127.0.0.1:{self.port}{path}"
                answers.append(httpx2.request(method, url, timeout=PATIENCE, **how))
            return bool(answers)

        wait_for(listens, complaint=lambda: "nobody listens")
        return answers[0]

    def until_told(self, path: str, name: str, value: object = None) -> Any:
        """Ask for an object again until it has this value for that name, or any."""
        found: list[Any] = []

        def told() -> bool:
            found.append(self.ask("GET", path).json().get(name))
            return found[-1] is not None if value is None else found[-1] == value

        wait_for(told)
        return found[-1]
