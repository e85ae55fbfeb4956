"""Real rota processes for tests: start, stop, pause and kill them, and never leave one behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.wait import PATIENCE, wait_for

ROOT = Path(__file__).parents[3]

# Kills what the tests started if they are killed themselves: `read` fails when our end of the pipe is gone.
GUARD = 'while read -r pid; do all="$all -$pid"; done; [ -z "$all" ] || kill -KILL -- $all 2>/dev/null'


class RotaProcess:
    """One process and its log, which holds what it wrote to stdout and stderr."""

    def __init__(self, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.pid = popen.pid
        self._popen = popen
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process; None while it is alive."""
        return self._popen.poll()

    def wait(self, seconds: float = PATIENCE) -> int:
        return self._popen.wait(seconds)

    def terminate(self) -> None:
        self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9; returns when it is gone."""
        self._popen.kill()
        self._popen.wait(PATIENCE)

    def pause(self) -> None:
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._popen.send_signal(signal.SIGCONT)

    def until_said(self, words: str) -> Self:
        """Wait until the log holds `words`."""

        def said() -> bool:
            assert self.exit_code is None or words in self.log, f"ended with {self.exit_code}:\n{self.log}"
            return words in self.log

        wait_for(said)
        return self

    @property
    def descendants(self) -> list[int]:
        return _descendants(self.pid)

    def memory_mb(self) -> float:
        """Resident memory of the process and all its descendants, in MB."""
        return sum(map(_resident_mb, [self.pid, *_descendants(self.pid)]))

    def end(self) -> None:
        """Whatever state it is in, with its whole group."""
        if self.exit_code is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait(PATIENCE)


class Processes:
    """Starts processes in `folder` and ends them all with the block; then it `tells` what they said."""

    def __init__(self, folder: Path, *, tells: bool = True) -> None:
        self._folder = folder
        self._tells = tells
        self._started: list[RotaProcess] = []

    def __enter__(self) -> Self:
        self._guard = subprocess.Popen(["sh", "-c", GUARD], stdin=subprocess.PIPE, start_new_session=True, cwd="/")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.end()
            if self._tells:
                print(f"--- process {process.pid} ended with {process.exit_code}:\n{process.log[-6_000:]}")
        self._guard.kill()
        self._guard.communicate()

    def rota(self, *arguments: str, environment: Mapping[str, str]) -> RotaProcess:
        return self.python("-m", "rota", *arguments, environment=environment)

    def python(self, *arguments: str, environment: Mapping[str, str]) -> RotaProcess:
        log = self._folder / f"process-{len(self._started) + 1}.log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self._folder,
                env=environment_with(environment),
            )
        assert self._guard.stdin is not None
        self._guard.stdin.write(b"%d\n" % popen.pid)
        self._guard.stdin.flush()
        process = RotaProcess(popen, log)
        self._started.append(process)
        return process

    @property
    def exit_codes(self) -> Sequence[int | None]:
        return [process.exit_code for process in self._started]


def environment_with(own: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ROTA_", "PYTEST", "COV"))}
    return {**inherited, "PYTHONPATH": str(ROOT), **own}


def _descendants(pid: int) -> list[int]:
    children = [int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in _read(task).split()]
    return [descendant for child in children for descendant in [child, *_descendants(child)]]


def _resident_mb(pid: int) -> float:
    lines = _read(Path(f"/proc/{pid}/status")).splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # ended since it was listed
