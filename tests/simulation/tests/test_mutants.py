"""The planted bugs apply to the source as it is, and the simulation finds those of them that are found quickly."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.mutants.catalogue import BUGS
from tests.simulation.mutants.patches import SOURCE, DoesNotApply, Edit, Planted, edited, planted
from tests.simulation.mutants.search import ROOT, Hunted, NoAnswer, false_alarm, hunt_all, hunt_one, try_seeds
from tests.simulation.mutants.trial import in_order
from tests.simulation.script.generator import draw
from tests.simulation.script.job_themes import ALL_THEMES

AT_LEAST = 240
QUICKLY = 40
SAMPLE = (
    "claim-keeps-the-fence",
    "success-keeps-the-lease",
    "snooze-does-not-wait",
    "cancel-only-notes-who-asked",
    "unique-key-is-not-held",
    "cursor-is-not-advanced",
    "backoff-in-milliseconds",
    "later-attempts-do-not-look-at-steps",
    "reaper-does-not-look-at-shields",
    "end-of-the-run-is-not-in-its-transaction",
    "followers-do-not-need-a-success",
    "hand-over-is-not-told",
)


def named(name: str) -> Planted:
    return next(bug for bug in BUGS if bug.name == name)


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len(BUGS) >= AT_LEAST
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_applies_to_the_source_as_it_is(bug: Planted) -> None:
    for edit in bug.edits:
        text = edited(edit)
        assert text != (SOURCE / edit.file).read_text(encoding="utf-8")
        if edit.file.endswith(".py"):
            ast.parse(text)


def test_a_bug_is_looked_for_first_in_worlds_of_its_themes() -> None:
    assert {theme for bug in BUGS for theme in bug.themes} <= {theme.name for theme in ALL_THEMES}
    order = in_order(range(60), ("keys", "order"))
    themes = [draw(seed).theme for seed in order]
    first = [theme in ("keys", "order") for theme in themes]
    assert first == sorted(first, reverse=True)
    assert 0 < sum(first) < len(order)
    assert sorted(order) == list(range(60))
    assert in_order([5, 3], ()) == [3, 5]


def test_a_bug_whose_place_has_changed_is_told() -> None:
    with pytest.raises(DoesNotApply, match="0 times"):
        edited(Edit("core/runs/outcome.py", "this is not there", ""))
    with pytest.raises(DoesNotApply, match="instead of once"):
        edited(Edit("core/runs/outcome.py", "return", ""))


def test_rota_without_a_bug_passes_the_same_machinery() -> None:
    assert try_seeds(None, 10) is None


@pytest.mark.parametrize("name", SAMPLE)
def test_a_bug_is_found_quickly_and_only_where_it_is(name: str) -> None:
    """A test for each: all of them in one took longer than a test may, on a busy machine."""
    hunted = hunt_one(named(name), QUICKLY)
    assert hunted.caught is not None, hunted.broken
    assert false_alarm([hunted]) is None


def test_each_search_is_heard_of_and_the_answers_are_in_order() -> None:
    heard: list[Hunted] = []
    hunted = hunt_all([named(name) for name in SAMPLE[:2]], QUICKLY, jobs=2, done=heard.append)
    assert [one.bug.name for one in hunted] == [*SAMPLE[:2]]
    assert {one.bug.name for one in heard} == {*SAMPLE[:2]}


def test_only_the_copy_is_tried(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.simulation.mutants.trial", str(tmp_path), "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"not the one in {tmp_path}" in done.stderr


def test_a_copy_that_does_not_start_is_not_a_bug_that_was_found() -> None:
    broken = planted("broken", "none", "core/runs/outcome.py", "class Requeue(", "class Requeue((")
    with pytest.raises(NoAnswer, match="SyntaxError"):
        try_seeds(broken, 1)
    hunted = hunt_one(broken, 1)
    assert hunted.caught is None
    assert hunted.broken is not None
