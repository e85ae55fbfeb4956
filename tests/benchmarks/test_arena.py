"""What the report of an arena says, of what was counted once a second."""

from benchmarks.measures.arena import ARENAS, Course, Moment, Plan, page

PLAN = Plan("held", ["rota"], 100, 3, 120)
COURSE = Course("rota", [Moment(0, 0, 0, 0), Moment(1, 100, 90, 7), Moment(2, 200, 200, 9), Moment(4, 400, 300, 1_200)])


def test_rates_are_those_between_two_moments() -> None:
    assert COURSE.rates() == [90, 110, 50]


def test_backlog_and_dead_rows_are_told_for_each_moment() -> None:
    lines = page(PLAN, {"machine": "2 cores"}, [COURSE]).splitlines()
    assert lines[0] == "# Arena: held, 100 jobs a second for 3 s"
    assert "- machine: 2 cores" in lines
    assert [line for line in lines if line.startswith(("| 1 ", "| 2 ", "| 4 "))] == [
        "| 1 | 90 | 10 | 7 |",
        "| 2 | 110 | 0 | 9 |",
        "| 4 | 50 | 100 | 1,200 |",
    ]
    assert lines[-1] == "handled/s: median 90, 50 to 110"


def test_the_usual_rates() -> None:
    assert {name: rate for name, (_, rate) in ARENAS.items()} == {"queries": 800, "held": 20_000}
