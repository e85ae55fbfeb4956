"""The log of an attempt within its limit: its beginning and its end are kept, and what is missing can be told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.engine.notebook import Line, Log


def line(size: int) -> Line:
    """That counts for so much, all in all."""
    return Line(0.0, 20, "", "x" * (size - Line(0.0, 20, "", "").size))


@given(st.lists(st.lists(st.integers(40, 400), max_size=30), max_size=60))
def test_what_is_kept_is_bounded_and_has_both_ends(writings: list[list[int]]) -> None:
    limit = 2_000
    log = Log(limit)
    kept: dict[int, tuple[Line, ...]] = {}
    said: list[Line] = []
    for sizes in writings:
        for size in sizes:
            said.append(line(size))
            log.add(said[-1])
        sheet = log.sheet()
        assert (sheet is None) == (not sizes)
        if sheet:
            assert sheet.no not in kept
            kept[sheet.no] = sheet.lines
            for no in sheet.drops:
                del kept[no]
    lines = [line for no in sorted(kept) for line in kept[no]]
    newest = max((sum(one.size for one in sheet) for sheet in kept.values()), default=0)
    assert sum(one.size for one in lines) <= limit + newest
    if said:
        assert lines[-1] is said[-1]
    if len(lines) < len(said):
        numbers = sorted(kept)
        assert any(no != place for place, no in enumerate(numbers, 1)), "something is missing, and nobody can tell"
    else:
        assert lines == said


def test_the_beginning_stays() -> None:
    log = Log(1_000)
    first = line(100)
    log.add(first)
    sheets = [log.sheet()]
    for _ in range(100):
        log.add(line(100))
        sheets.append(log.sheet())
    dropped = {no for sheet in sheets if sheet for no in sheet.drops}
    assert sheets[0]
    assert sheets[0].lines == (first,)
    assert sheets[0].no not in dropped
    assert len(dropped) > 80
