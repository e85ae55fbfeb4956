"""Whose code rota needs and ships, and under which licence: writes `LICENSES/`, after requirements or `web/` changed.

`python tools/licences.py`, in the development environment. The dashboard's bundle holds code of the npm packages, so
their texts go into the package; Python packages are installed beside it and bring their own.
"""

from __future__ import annotations

import json
import re
import textwrap
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LICENSES = ROOT / "LICENSES"
ANY = "any that the OSI approves"  # apsw leaves the choice to us
PERMISSIVE = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "PSF-2.0", "Zlib", ANY}
_PIN = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;\\]+)", re.MULTILINE)
_OLD_NAMES = {
    "Apache 2.0": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "any-OSI": ANY,
}


class Package(NamedTuple):
    name: str
    version: str
    licence: str


def python_packages() -> list[Package]:
    pins = _PIN.findall((ROOT / "requirements" / "run.txt").read_text())
    return [Package(name, version, _licence_of(name)) for name, version in pins]


def _licence_of(name: str) -> str:
    """What a package says of itself: an expression, or in packages that are older than those a text or a classifier."""
    said = metadata.metadata(name)
    classifiers = [
        text.rpartition(" :: ")[2] for text in said.get_all("Classifier") or [] if text.startswith("License")
    ]
    given = said["License-Expression"] or said["License"] or ""
    short = given if given and "\n" not in given else " AND ".join(classifiers)
    return _OLD_NAMES.get(short, short)


def bundled_packages() -> list[Package]:
    """Those of the lock that are not for development only."""
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    found = [(path, package) for path, package in lock.items() if path and not package.get("dev")]
    return [Package(path.removeprefix("node_modules/"), one["version"], one["license"]) for path, one in found]


def is_permissive(licence: str) -> bool:
    """One of several may be chosen; of those that hold together, each must be."""
    choices = [choice.strip(" ()").split(" AND ") for choice in licence.split(" OR ")]
    return any(all(part.strip(" ()") in PERMISSIVE for part in parts) for parts in choices)


def texts() -> dict[str, list[Package]]:
    """Each text, and the packages that it is for."""
    found: dict[str, list[Package]] = {}
    for package in bundled_packages():
        folder = ROOT / "web" / "node_modules" / package.name
        files = sorted(path for path in folder.iterdir() if re.match("licen[cs]e|copying|notice", path.name.lower()))
        for path in files:
            found.setdefault(path.read_text().strip(), []).append(package)
        if not files:
            found.setdefault(f"Its package has no text; it says: {package.licence}.", []).append(package)
    return found


def dashboard_text() -> str:
    parts = ["The dashboard in this package holds code of the following packages, under these licences.\n"]
    for text, packages in texts().items():
        names = ", ".join(f"{one.name} {one.version}" for one in packages)
        parts.append(f"{'=' * 80}\n{textwrap.fill(names, 80, break_on_hyphens=False)}\n{'=' * 80}\n\n{text}\n")
    return "\n".join(parts)


def overview() -> str:
    return "\n".join(
        [
            "# Licences of others\n",
            "Made by `python tools/licences.py`. rota itself is under the [MIT licence](../LICENSE).\n",
            "## In the dashboard\n",
            "Their code is part of the package; [their texts](dashboard.txt) are, too.\n",
            *_table(bundled_packages()),
            "\n## Installed beside rota\n",
            "With the extras `http` and `jwt`, in the versions that are tested.\n",
            *_table(python_packages()),
            "",
        ]
    )


def _table(packages: list[Package]) -> list[str]:
    return ["| package | version | licence |", "|---|---|---|", *[f"| {' | '.join(one)} |" for one in packages]]


if __name__ == "__main__":
    (LICENSES / "dashboard.txt").write_text(dashboard_text())
    (LICENSES / "README.md").write_text(overview())
