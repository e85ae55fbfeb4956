"""CPU and memory limits of the program of a command job."""

from __future__ import annotations

import math
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from rota.core.progress.control_flow import Fail
from rota.values.durations import format_duration
from rota.values.sizes import format_size

CPU_LIMIT = "cpu_limit"

# A program that sets the limits of its own process and becomes the command. Not `preexec_fn`: between fork and exec a
# process with threads must not run Python. The hard limit of CPU time is a second later, for whoever ignores SIGXCPU.
_LAUNCH = """
import os, resource, sys
cpu, memory, *argv = sys.argv[1:]
if cpu != "-":
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu), int(cpu) + 1))
if memory != "-":
    resource.setrlimit(resource.RLIMIT_DATA, (int(memory), int(memory)))
os.execvp(argv[0], argv)
"""


class ProcessLimits(msgspec.Struct, frozen=True):
    """Limits of each process of a command. They are the kernel's: what the program starts inherits them."""

    cpu_limit: timedelta | None = None
    memory_limit: int | None = None

    def argv(self, argv: Sequence[str], env: Mapping[str, str]) -> Sequence[str]:
        """Return the words that start the program under its limits; those of the program itself without any."""
        if self.cpu_limit is None and self.memory_limit is None:
            return argv
        if "/" not in argv[0] and shutil.which(argv[0], path=env.get("PATH")) is None:
            raise Fail(f"{argv[0]} cannot be run: there is no such program", code="no_command")
        cpu = "-" if self.cpu_limit is None else str(math.ceil(self.cpu_limit.total_seconds()))
        memory = "-" if self.memory_limit is None else str(self.memory_limit)
        return [sys.executable, "-I", "-S", "-c", _LAUNCH, cpu, memory, *argv]

    def exceeded(self, exit_code: int) -> Fail | None:
        """Return the failure of a program that was killed because of its CPU time; None for other exit codes.

        What a program does that gets no more memory is up to it.
        """
        if self.cpu_limit is None or exit_code not in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
            return None
        return Fail(f"more CPU time than its limit of {format_duration(self.cpu_limit)}", code=CPU_LIMIT)

    def remark(self, exit_code: int) -> str:
        """Return a remark on an exit that a lack of memory may have caused."""
        memory = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS)
        if self.memory_limit is None or (exit_code < 0 and exit_code not in memory):
            return ""
        return f" (its memory limit is {format_size(self.memory_limit)})"
