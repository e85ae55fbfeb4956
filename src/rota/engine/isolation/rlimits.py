"""Resource limits of one call in a child process: set them, lift them, and explain an exceeded one."""

from __future__ import annotations

import errno
import math
import resource
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rota.core.runs.run import RunError
from rota.engine.isolation.protocol import Death, data_size
from rota.values.sizes import format_size

CPU_LIMIT, MEMORY_LIMIT, PROCESS_DIED = "cpu_limit", "memory_limit", "process_died"


@contextmanager
def confined(cpu_limit: float | None, memory_limit: int | None) -> Iterator[None]:
    """Set soft limits for the duration of the block: the next call in this process has its own.

    Memory is what RLIMIT_DATA counts, private and writable. RLIMIT_AS would also count reserved addresses: 70 MB for
    each thread, and the code of all libraries.
    """
    with ExitStack() as limits:
        if cpu_limit is not None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            limits.enter_context(_soft(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + cpu_limit)))
        if memory_limit is not None:
            taken = data_size("self") or 0
            if taken >= memory_limit:
                raise MemoryError(f"the process takes {format_size(taken)} before the handler begins")
            limits.enter_context(_soft(resource.RLIMIT_DATA, memory_limit))
        yield


@contextmanager
def _soft(kind: int, limit: int) -> Iterator[None]:
    before, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (before, hard))


def out_of_memory(error: BaseException, limit: int | None, peak_mb: int | None) -> dict[str, str]:
    """Return a better description of an exception that the memory limit caused: its own message is often empty."""
    refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
    if limit is None or not (isinstance(error, MemoryError) or refused):
        return {}
    peak = "" if peak_mb is None else f"; {peak_mb}MB at the peak"
    detail = f": {error}" if str(error) else ""
    return {"code": MEMORY_LIMIT, "message": f"more memory than its limit of {format_size(limit)}{peak}{detail}"}


def told(death: Death) -> RunError:
    """Describe how a process died."""
    if death.signal == signal.SIGXCPU and death.cpu_limit is not None:
        used = "" if death.cpu_time_ms is None else f"; used {death.cpu_time_ms / 1000:.3g}s"
        message = f"more CPU time than its limit of {death.cpu_limit:g}s{used}"
        return RunError(type="CpuLimitExceeded", message=message, code=CPU_LIMIT)
    how = _signal(death.signal) if death.signal else f"exit code {death.exit_code}"
    hint = ""
    if death.signal == signal.SIGKILL and not death.ours:
        hint = ", which this worker did not send: perhaps the system ran out of memory"
    elif death.signal in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS) and death.memory_limit is not None:
        hint = f", perhaps out of memory: its limit is {format_size(death.memory_limit)}"
    return RunError(type="ProcessDied", message=f"the process ended with {how}{hint}", code=PROCESS_DIED)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # such as the real-time ones, which have no names of their own
        return f"signal {number}"
