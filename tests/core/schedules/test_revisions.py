"""Revisions: why a schedule was not active, whatever was done to it meanwhile."""

from typing import Any

import pytest

from rota.core.calendar.rules import Rule
from rota.core.calendar.triggers import every
from rota.core.schedules.revisions import Inactivity, Revision, rests
from rota.core.schedules.schedule import ScheduleDefinition

Facts = dict[str, Any]


def revisions(*notes: tuple[str, Facts]) -> list[Revision]:
    """Number revisions from 1, each valid from ten times its number on, and not active unless it says so."""
    found = []
    for no, (note, facts) in enumerate(notes, 1):
        options = {"job": "work", "active": False, **facts}
        active = options.pop("active")
        definition = ScheduleDefinition(rule=Rule(every("1m")), **options)
        found.append(Revision(no, no * 10, definition, "1", active, note, f"actor {no}"))
    return found


ON: Facts = {"active": True}
OFF: Facts = {"enabled": False}
TWO: Facts = {"max_runs": 2}


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        (
            [("created", ON), ("paused: mine", {}), ("job paused", {}), ("job resumed", {}), ("resumed", ON)],
            [(2, "paused: mine", 2), (3, "paused: mine", 2), (4, "paused: mine", 2)],
        ),
        (
            [("created", ON), ("job paused", {}), ("paused: mine", {}), ("resumed", {}), ("edited", {})],
            [(2, "job paused", 2), (3, "paused: mine", 3), (4, "job paused", 2), (5, "job paused", 2)],
        ),
        (
            [("created", ON), ("paused: a", {}), ("edited", {}), ("paused: b", {})],
            [(2, "paused: a", 2), (3, "paused: a", 2), (4, "paused: b", 2)],
        ),
        (
            [("created", OFF), ("paused", OFF), ("edited", {}), ("resumed", ON), ("job cancelled", OFF)],
            [(1, "disabled", 1), (2, "disabled", 1), (3, "paused", 2), (5, "job cancelled", 5)],
        ),
        ([("created", TWO), ("job resumed", {**TWO, **ON})], [(1, "job paused", 1)]),
        ([("created", {**TWO, **ON}), ("edited", {**TWO, "job": "other"})], [(2, "job paused", 2)]),
    ],
)
def test_what_held_a_schedule(notes: list[tuple[str, Facts]], expected: list[tuple[int, str, int]]) -> None:
    found = rests(revisions(*notes))
    assert [(no, rest.reason, rest.since // 10) for no, rest in found.items()] == expected
    assert not any(rest.ended for rest in found.values())


def test_who_held_it_is_who_paused_it() -> None:
    found = rests(revisions(("created", ON), ("paused: a", {}), ("job paused", {}), ("paused: b", {})))
    assert [rest.by for rest in found.values()] == ["actor 2", "actor 2", "actor 4"]


def test_the_end_is_the_end_until_more_runs_are_allowed() -> None:
    end = Inactivity("ended: its max_runs were 2", "actor 2", 20, ended=True)
    found = rests(
        revisions(
            ("created", {**TWO, **ON}),
            ("ended: its max_runs were 2", TWO),
            ("job paused", TWO),
            ("paused, and caught up with (all)", {**TWO, **ON}),  # an empty one: there was nothing to catch up with
            ("job resumed", TWO),
            ("paused", TWO),
            ("edited", {"max_runs": 3}),
            ("resumed", {"max_runs": 3, **ON}),
            ("edited", {"max_runs": 1}),
        )
    )
    assert [found.pop(no) for no in (2, 3, 5, 6)] == [end] * 4
    assert found.pop(7) == Inactivity("paused", "actor 6", 60)
    assert found == {9: Inactivity("ended: its max_runs were 1", "actor 9", 90, ended=True)}
