"""Test the size limit of an attempt's log: its beginning and end are kept, and gaps are marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.engine.handlers.note_buffer import Line, Log


def line(size: int) -> Line:
    """Return a line whose size counts as `size`."""
    return Line(0.0, 20, "", "x" * (size - Line(0.0, 20, "", "").size))


@given(st.lists(st.lists(st.integers(40, 400), max_size=60), max_size=40))
def test_what_is_kept_is_bounded_and_has_both_ends(writings: list[list[int]]) -> None:
    limit = 2_000
    log = Log(limit)
    kept: dict[int, tuple[Line, ...]] = {}
    said: list[Line] = []
    for sizes in writings:
        for size in sizes:
            said.append(line(size))
            log.add(said[-1])
        chunks = log.chunks()
        assert (not chunks) == (not sizes)
        for chunk in chunks:
            assert chunk.no > max(kept, default=0)
            kept[chunk.no] = chunk.lines
            for no in chunk.drops:
                del kept[no]
    lines = [line for no in sorted(kept) for line in kept[no]]
    assert sum(one.size for one in lines) <= limit
    if said:
        assert lines[0] is said[0]
        assert lines[-1] is said[-1]
    if len(lines) < len(said):
        numbers = sorted(kept)
        assert any(no != place for place, no in enumerate(numbers, 1)), "something is missing, and nobody can tell"
    else:
        assert lines == said


def test_the_beginning_stays_also_of_a_flood() -> None:
    log = Log(1_000)
    flood = [line(100) for _ in range(1_000)]
    for one in flood:
        log.add(one)
    first, last = log.chunks()
    assert first.lines == tuple(flood[:2])
    assert last.lines == tuple(flood[-7:])
    assert (first.no, last.no) == (1, 3)
    for one in flood:
        log.add(one)
    (later,) = log.chunks()
    assert later.drops == (3,)
