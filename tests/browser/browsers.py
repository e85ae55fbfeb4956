"""Find a browser and axe for tests: this machine's own, or those of npm."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.processes.node import node
from tests.support.processes.npm import installed, run

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
    with installed(HERE, optional=True):
        return _unpack()


def _unpack() -> tuple[str, dict[str, str]]:
    folder = MODULES / ".chromium"
    folder.mkdir(exist_ok=True)
    done = run([node(), "--input-type=module", "-e", _UNPACK], HERE, {"TMPDIR": str(folder)})
    if done.returncode:
        pytest.fail(f"{HINT}\n{done.stderr}", pytrace=False)
    (folder / "fonts.conf").write_text(_FONTS.format(folder=folder / "fonts"))
    libraries = f"{folder / 'al2023' / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    return done.stdout.strip(), {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_FILE": str(folder / "fonts.conf")}


def axe_source() -> str:
    with installed(HERE) as modules:
        return (modules / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
