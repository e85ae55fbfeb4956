"""Admission: one number for each, and nobody else writes the numbers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rota
from rota.core.runs.admission import HOLD_TOKENS, QUEUED, Admission, Hold, hold_of, is_queued

SOURCE = Path(rota.__file__).parent
BARE = re.compile(r"\bhold\b(?: \+ 0)?\)? (?:=|==|!=|<>|in|not in) ?\(*\d")
ASSIGNED = re.compile(r"\bhold = case\b(?:(?!\bend[,\n ]).)*\b(?:then|else) \d", re.DOTALL)


def test_the_numbers_of_older_programs() -> None:
    assert [(hold.name, hold.value) for hold in Hold] == [
        ("OPEN", 0), ("OPEN_LATER", 1), ("LIMITED", 2), ("BLOCKED", 3), ("LIMITED_LATER", 4), ("PARENT", 5),
        ("RESTRICTED", 6), ("RESTRICTED_LATER", 7),
    ]  # fmt: skip


@pytest.mark.parametrize("admission", Admission)
@pytest.mark.parametrize("due", [True, False])
def test_the_stored_number(admission: Admission, due: bool) -> None:
    hold = Hold(hold_of(admission, due=due))
    assert hold.name.removesuffix("_LATER") == admission.name
    assert not (due and hold.name.endswith("_LATER"))


def test_what_may_be_claimed_is_due_and_waits_for_no_other() -> None:
    claimable = (Admission.OPEN, Admission.LIMITED, Admission.RESTRICTED)
    assert tuple(hold_of(admission, due=True) for admission in claimable) == QUEUED
    assert [hold for hold in Hold if is_queued(hold)] == sorted(QUEUED)


def sources() -> Iterator[Path]:
    yield from SOURCE.rglob("*.py")
    yield from (path for path in SOURCE.rglob("*.sql") if "migrations" not in path.parts)


def test_no_bare_number_stands_beside_hold() -> None:
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in sources()}
    assert {name: BARE.findall(text) for name, text in texts.items() if BARE.search(text)} == {}
    assert [name for name, text in texts.items() if ASSIGNED.search(text)] == []


@pytest.mark.parametrize("name", HOLD_TOKENS)
def test_each_name_is_used_in_the_statements(name: str) -> None:
    assert any(f"{{{name}}}" in path.read_text() for path in SOURCE.rglob("*.sql"))
