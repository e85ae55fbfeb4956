"""Which orders are played: all that differ in steps which may not be swapped, within the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.explorer.actors import Step
from tests.explorer.footprints import Footprint, footprint_of
from tests.explorer.play import Choice
from tests.explorer.search import Search

Program = Sequence[str]
"""What an actor does: `r` reads and `w` writes a table, which the next character names."""


def step(word: str) -> Step:
    tables = frozenset(word[1:])
    return Step(word, Footprint(reads=tables, locks=tables if word[0] == "w" else frozenset()))


def orders(programs: Mapping[str, Program], preemptions: int, *, asleep: bool = True) -> list[str]:
    """Play programs that never wait; return the orders that were not given up."""
    search, found = Search(preemptions, asleep=asleep), []
    while not search.over:
        left = {name: list(program) for name, program in programs.items()}
        order: list[str] = []
        while enabled := {name: step(words[0]) for name, words in left.items() if words}:
            name = search.choose(Choice(enabled, {}, order[-1] if order else None, within=False))
            order.append(name)
            left[name].pop(0)
        if not search.cut:
            found.append("".join(order))
        search.next()
    return found


def effects(programs: Mapping[str, Program], order: str) -> frozenset[tuple[str, str]]:
    """Return which step comes before which, among those that may not be swapped."""
    left = {name: list(enumerate(program)) for name, program in programs.items()}
    made = [(name, *left[name].pop(0)) for name in order]
    return frozenset(
        (f"{one}{place}", f"{other}{later}")
        for at, (one, place, word) in enumerate(made)
        for other, later, then in made[at + 1 :]
        if one != other and step(word).footprint.touches(step(then).footprint)
    )


TWO = {"A": ["wx", "ry", "wz"], "B": ["wz", "wx"]}
THREE = {"A": ["wx", "wy"], "B": ["wy", "wx"], "C": ["wy"]}


@pytest.mark.parametrize("programs", [TWO, THREE])
@pytest.mark.parametrize("preemptions", [0, 1, 2, 9])
def test_no_effect_is_left_out(programs: Mapping[str, Program], preemptions: int) -> None:
    everything = orders(programs, preemptions, asleep=False)
    assert len(everything) == len(set(everything))
    few = orders(programs, preemptions)
    assert {effects(programs, order) for order in few} == {effects(programs, order) for order in everything}
    assert set(few) <= set(everything)


def test_steps_that_may_be_swapped_are_not() -> None:
    apart = {"A": ["wx", "wx"], "B": ["wy", "wy"]}
    assert len(orders(apart, 9, asleep=False)) == 6
    assert len(orders(apart, 9)) == 2  # who begins is a choice that costs nothing


def test_preemptions_are_counted() -> None:
    same = {"A": ["wx", "wx"], "B": ["wx", "wx"]}
    assert sorted(orders(same, 0)) == ["AABB", "BBAA"]
    assert "ABAB" not in orders(same, 1)
    assert "ABAB" in orders(same, 2)


@pytest.mark.parametrize(
    ("sql", "reads", "locks"),
    [
        ("select 1 from rota_run where id = $1", {"rota_run"}, set()),
        ("select 1 from rota_ready w join rota_run r on true for update of w", {"rota_ready", "rota_run"}, None),
        (
            "delete from rota_lease where run_id in (select id from rota_run)",
            {"rota_lease", "rota_run"},
            {"rota_lease"},
        ),
        ("insert into rota_gate select 1 from rota_limit", {"rota_gate", "rota_limit"}, {"rota_gate"}),
        ("update rota_run set state = 'failed'", {"rota_run"}, {"rota_run", "rota_fault"}),
        ("select 1 from rota_schedule_now -- rota_run", {"rota_schedule", "rota_cursor"}, set()),
    ],
)
def test_the_footprint_of_a_statement(sql: str, reads: set[str], locks: set[str] | None) -> None:
    footprint = footprint_of(sql)
    assert footprint.reads == reads
    assert footprint.locks == (reads if locks is None else locks)


def test_what_is_written_is_seen_once_it_is_committed() -> None:
    reads, writes = footprint_of("select 1 from rota_run"), footprint_of("update rota_run set result = null")
    assert not reads.touches(writes)
    assert reads.touches(writes.ended())
    assert writes.touches(writes)
