"""Test that a new mode of a policy is missing nowhere: what mypy cannot name is named here."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from rota.core.limits.limits import WhenFull
from rota.core.schedules.policies import CatchUpMode, FailureMode, OverlapMode
from tests.simulation.script import themes

WEB = Path(__file__).parents[2] / "web" / "src" / "views" / "schedules"
LISTS: dict[str, type[StrEnum]] = {
    "OVERLAPS": OverlapMode,
    "CATCH_UPS": CatchUpMode,
    "FAILURES": FailureMode,
    "FULLS": WhenFull,
}


@pytest.mark.parametrize(("name", "modes"), LISTS.items())
def test_the_dashboard_offers_every_mode(name: str, modes: type[StrEnum]) -> None:
    text = (WEB / "modes.ts").read_text(encoding="utf-8")
    listed = re.search(rf"const {name} = \[(.*?)\]", text)
    assert listed is not None
    assert set(re.findall(r'"(\w+)"', listed[1])) == set(modes)


def test_the_simulation_draws_every_mode() -> None:
    def mode_of(policy: object) -> object:
        return policy["mode"] if isinstance(policy, dict) else policy

    assert {mode_of(policy) for policy in themes.OVERLAPS} == set(OverlapMode)
    assert {mode_of(policy) for policy in themes.CATCH_UPS} == set(CatchUpMode)
