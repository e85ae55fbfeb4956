"""A terminal for the commands in documentation pages: one shell, and programs in the background."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.support.processes.rota_process import GUARD
from tests.support.wait import wait_for

READY = r"worker .* runs |^http://|^dashboard "  # what `rota worker`, `rota server` and `rota dev` say when they are
MARK = "--- ended with"


class Terminal:
    """Types into bash, so that variables last; ends everything it started, by the numbers of their groups."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._scripts: dict[str, tuple[str, str]] = {}
        self._running: dict[str, int] = {}
        self._environment = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "COLUMNS": "120",
            "NO_COLOR": "1",
            **environment,
        }

    def __enter__(self) -> Self:
        (self._folder / ".curlrc").write_text("fail-with-body\n")  # an error is an error, also for `curl -s`
        self._guard = subprocess.Popen(["sh", "-c", GUARD], stdin=subprocess.PIPE, start_new_session=True, cwd="/")
        self._shell = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            env=self._environment,
            start_new_session=True,
        )
        self._look_after(self._shell.pid)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self.end(name, signal.SIGKILL)
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()
        self._guard.kill()
        self._guard.communicate()

    def type(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit code and output, both streams together."""
        script = self._folder / ".command"
        script.write_text(command + "\n")
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f". ./{script.name} </dev/null; printf '\\n{MARK} %d\\n' $?\n")
        self._shell.stdin.flush()
        output = ""
        for line in self._shell.stdout:
            if line.startswith(MARK):
                return int(line.removeprefix(MARK)), output.removesuffix("\n")
            output += line
        return self._shell.wait(), output

    def start(self, name: str, script: str, until: str = READY) -> None:
        """Start a program in a group of its own with the shell's exports; return when its output matches `until`."""
        self._scripts[name] = (script, until)
        (self._folder / f".{name}").write_text(script)
        log = self._folder / f".{name}.log"
        log.write_text("")
        code, output = self.type(f"setsid bash -e .{name} >>{log.name} 2>&1 </dev/null & echo $!; disown")
        assert code == 0, output
        self._running[name] = int(output)
        self._look_after(int(output))
        wait_for(lambda: self._has_said(name, until))

    def _has_said(self, name: str, until: str) -> bool:
        log = (self._folder / f".{name}.log").read_text()
        process = self._running[name]
        if not is_alive(process):
            assert not until, f"{name} has ended:\n{log}"
            return True
        return os.getpgid(process) == process and re.search(until, log, re.MULTILINE) is not None

    def start_again(self, name: str) -> bool:
        """Start the program of this name again; return whether there was one."""
        if name in self._scripts:
            self.start(name, *self._scripts[name])
        return name in self._scripts

    def end(self, name: str, how: signal.Signals) -> None:
        group = self._running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, how)
        wait_for(lambda: not is_alive(group))

    def _look_after(self, group: int) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(b"%d\n" % group)
        self._guard.stdin.flush()


def is_alive(pid: int) -> bool:
    try:
        return os.getpgid(pid) > 0
    except ProcessLookupError:
        return False
