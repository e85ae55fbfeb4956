"""Who used the CPU: one process, a server with its children, the whole machine. Nothing where there is no /proc."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """CPU seconds: ours (the database server, the workers, the runner), then the machine's over all cores."""

    server: float
    workers: float
    runner: float
    busy: float
    stolen: float

    @property
    def others(self) -> float:
        """What is not ours: neighbours, and the kernel's own threads."""
        return max(0.0, self.busy - self.server - self.workers - self.runner)

    def __sub__(self, earlier: "Usage") -> "Usage":
        return Usage(
            self.server - earlier.server,
            self.workers - earlier.workers,
            self.runner - earlier.runner,
            self.busy - earlier.busy,
            self.stolen - earlier.stolen,
        )


def usage(server: int | None, workers: list[int]) -> Usage:
    busy, stolen = _machine()
    return Usage(
        server=_with_children(server) if server else 0.0,
        workers=sum(_of(pid) for pid in workers),
        runner=time.process_time(),
        busy=busy,
        stolen=stolen,
    )


def parent(pid: int) -> int | None:
    fields = _fields(pid)
    return int(fields[1]) if fields else None


def _of(pid: int) -> float:
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) * TICK if fields else 0.0


def _with_children(pid: int) -> float:
    """A postmaster, its live children, and those that have ended (which the kernel adds to their parent)."""
    fields = _fields(pid)
    if not fields:
        return 0.0
    ended = (int(fields[13]) + int(fields[14])) * TICK
    try:
        children = (PROC / str(pid) / "task" / str(pid) / "children").read_text().split()
    except OSError:
        children = []
    return _of(pid) + ended + sum(_of(int(child)) for child in children)


def _fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on: the name before it may hold spaces and brackets."""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _machine() -> tuple[float, float]:
    try:
        user, nice, system, _idle, _wait, irq, softirq, steal = (
            int(field) * TICK for field in (PROC / "stat").read_text().split()[1:9]
        )
    except (OSError, ValueError):
        return 0.0, 0.0
    return user + nice + system + irq + softirq, steal
