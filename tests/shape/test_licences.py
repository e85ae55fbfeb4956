"""Code of others: pinned, from nowhere in particular, under permissive licences that are told."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINS = sorted((ROOT / "requirements").glob("*.txt"))

_spec = importlib.util.spec_from_file_location("licences", ROOT / "tools" / "licences.py")
assert _spec is not None
assert _spec.loader is not None
licences = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(licences)


def test_all_of_them_are_permissive() -> None:
    packages = licences.python_packages() + licences.bundled_packages()
    assert [one for one in packages if not licences.is_permissive(one.licence)] == []
    assert len(packages) > 30


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "MIT AND LGPL-2.1", "", "UNLICENSED", "GPL-2.0 OR AGPL-3.0"])
def test_others_would_be_found(licence: str) -> None:
    assert not licences.is_permissive(licence)
    assert licences.is_permissive(f"{licence} OR MIT")


def test_what_is_told_of_them_is_current() -> None:
    """`python tools/licences.py` writes it."""
    assert (ROOT / "LICENSES" / "README.md").read_text() == licences.overview()
    told = (ROOT / "LICENSES" / "dashboard.txt").read_text()
    if (ROOT / "web" / "node_modules").exists():  # where the dashboard is built already, it need not be
        assert told == licences.dashboard_text()
    assert all(f"{one.name} {one.version}" in told.replace("\n", " ") for one in licences.bundled_packages())


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_no_file_names_a_host(path: Path) -> None:
    text = path.read_text()
    pins = [pin for pin in re.split(r"\n(?=\S)", text) if not pin.startswith("#")]
    assert [pin for pin in pins if "==" not in pin.splitlines()[0] or "--hash=sha256:" not in pin] == []
    assert not re.search(r"https?://|index-url|find-links|trusted-host", text)
