"""Start and reap child processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass

import msgspec

from rota.engine.isolation.protocol import Death, ProcessCall

preparations: dict[str, None] = {}
"""Functions, as MODULE:NAME, that children call before they import a handler, such as Django's setup."""


@dataclass(frozen=True, slots=True)
class Exit:
    """End of a process; all None if other code in this process reaped it."""

    code: int | None = None
    signal: int | None = None
    cpu_ms: int | None = None


def spawn(invoke: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    # The child needs the parent's sys.path for its first import; it then restores the original PYTHONPATH.
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
    ours, theirs = socket.socketpair()
    with theirs:
        argv = [
            sys.executable,
            "-P",
            "-m",
            "rota.engine.isolation.child_main",
            "--fd",
            str(theirs.fileno()),
            "--invoke",
            invoke,
        ]
        try:
            popen = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=[theirs.fileno()], env=environ
            )
        except BaseException:
            ours.close()
            raise
    ours.setblocking(False)
    return ours, popen


def reap(popen: subprocess.Popen[bytes]) -> Exit:
    try:
        _, status, usage = os.wait4(popen.pid, 0)
    except ChildProcessError:
        popen.returncode = 0
        return Exit()
    code = popen.returncode = os.waitstatus_to_exitcode(status)
    cpu_ms = round((usage.ru_utime + usage.ru_stime) * 1000)
    return Exit(None, -code, cpu_ms) if code < 0 else Exit(code, None, cpu_ms)


def encoded_death(ended: Exit, ours: bool, call: ProcessCall | None = None, cpu_ms: int | None = None) -> bytes:
    cpu_limit = call.cpu_limit if call else None
    return msgspec.json.encode(
        Death(
            exit_code=ended.code,
            signal=ended.signal,
            ours=ours,
            cpu_time_ms=cpu_ms if cpu_limit is not None else None,
            cpu_limit=cpu_limit,
            memory_limit=call.memory_limit if call else None,
        )
    )
