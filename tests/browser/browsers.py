"""Find a browser and axe for tests: this machine's own, or those of npm."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.node import node

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
_UNPACK = """
import Chromium, { inflate } from "@sparticuz/chromium";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
const bin = join(dirname(createRequire(import.meta.url).resolve("@sparticuz/chromium")), "..", "bin");
await inflate(join(bin, "al2023.tar.br"));
console.log(await Chromium.executablePath());
"""
_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}</dir><cachedir>{folder}/cache</cachedir></fontconfig>"""

HINT = """there is no browser: install Chromium, or name one with ROTA_TEST_BROWSER=/path/to/chromium;
the one that npm has (@sparticuz/chromium, x86-64 Linux only) could not be fetched or started"""


def browser() -> tuple[str, dict[str, str]]:
    """The program, and what it wants to find in its environment."""
    named = os.environ.get("ROTA_TEST_BROWSER")
    if named:
        return named, {}
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return (found, {}) if found else unpacked()


def unpacked() -> tuple[str, dict[str, str]]:
    """npm's Chromium brings its libraries and a font along."""
    with _alone():
        return _unpack()


def _unpack() -> tuple[str, dict[str, str]]:
    _install(optional=True)
    folder = MODULES / ".chromium"
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = _run([node(), "--input-type=module", "-e", _UNPACK], environment)
    if done.returncode:
        pytest.fail(f"{HINT}\n{done.stderr}", pytrace=False)
    (folder / "fonts.conf").write_text(_FONTS.format(folder=folder / "fonts"))
    libraries = f"{folder / 'al2023' / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    return done.stdout.strip(), {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_FILE": str(folder / "fonts.conf")}


def axe_source() -> str:
    with _alone():
        _install()
    return (MODULES / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Several test processes begin at the same time; one of them fetches."""
    with (HERE / "package.json").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(*, optional: bool = False) -> None:
    lock = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    stamp, wanted = MODULES / ".rota-stamp", {lock, f"{lock} all"} if not optional else {f"{lock} all"}
    if stamp.exists() and stamp.read_text() in wanted:
        return
    npm = Path(node()).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    program = [node(), str(npm)] if npm.exists() else [shutil.which("npm") or "npm"]
    how = [] if optional else ["--omit=optional"]
    done = _run([*program, "ci", "--loglevel", "error", *how])
    if done.returncode:
        pytest.fail(f"npm could not fetch what tests/browser/package.json names\n{done.stderr}", pytrace=False)
    stamp.write_text(f"{lock} all" if optional else lock)


def _run(command: list[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Node trusts whom the system trusts; else npm tries again and again where a proxy signs for others."""
    trusting = {"NODE_USE_SYSTEM_CA": "1", **(environment or os.environ)}
    return subprocess.run(command, cwd=HERE, env=trusting, capture_output=True, text=True, check=False, timeout=300)
