"""Install what a folder's package.json names, with the npm of the wheel, and run Node with it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.processes.node import node


@contextlib.contextmanager
def installed(folder: Path, *, optional: bool = False) -> Iterator[Path]:
    """Install what is not yet installed; `node_modules`. Several test processes begin at the same time: one installs,
    and the others wait for their turn."""
    with (folder / "package.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _install(folder, optional=optional)
        yield folder / "node_modules"


def _install(folder: Path, *, optional: bool) -> None:
    lock = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    stamp = folder / "node_modules" / ".rota-stamp"
    wanted = {f"{lock} all"} if optional else {lock, f"{lock} all"}
    if stamp.exists() and stamp.read_text() in wanted:
        return
    npm = Path(node()).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    program = [node(), str(npm)] if npm.exists() else [shutil.which("npm") or "npm"]
    how = [] if optional else ["--omit=optional"]
    done = run([*program, "ci", "--loglevel", "error", *how], folder)
    if done.returncode:
        pytest.fail(f"npm could not fetch what {folder.name}/package.json names\n{done.stderr}", pytrace=False)
    stamp.write_text(f"{lock} all" if optional else lock)


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Node trusts whom the system trusts; else npm tries again and again where a proxy signs for others."""
    trusting = {"NODE_USE_SYSTEM_CA": "1", **os.environ, **(environment or {})}
    return subprocess.run(command, cwd=folder, env=trusting, capture_output=True, text=True, check=False, timeout=300)
