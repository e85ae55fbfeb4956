"""Databases of the conformance suite: each door of a case has a fresh one."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first pause of a scope wait for no other process to notice it: there is none."""
    monkeypatch.setattr("rota.store.limits.quotas._NOTICED_AFTER", 0)


@pytest.fixture(params=["sqlite", "postgres"])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Return a function that provides another fresh database at each call."""
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("sqlite_template")
        numbers = itertools.count()

        def copy() -> str:
            path = tmp_path / f"{next(numbers)}.db"
            shutil.copy(template, path)
            return f"sqlite:///{path}"

        yield copy
        return
    lending = request.getfixturevalue("postgres_lending")
    lent: list[str] = []

    def lend() -> str:
        lent.append(lending.lend())
        return lent[-1]

    yield lend
    for url in lent:
        lending.take_back(url)
