"""How a worker shares its free places between queues."""

from hypothesis import given
from hypothesis import strategies as st

from rota.core.claims import START, Watermark, shares

queue_lists = st.lists(st.sampled_from("abcdefgh"), unique=True)


@st.composite
def appetites(draw: st.DrawFn) -> tuple[int, list[str], dict[str, bool]]:
    queues = draw(queue_lists)
    hungry = draw(st.dictionaries(st.sampled_from(queues), st.booleans())) if queues else {}
    return draw(st.integers(-2, 40)), queues, hungry


@given(appetites())
def test_never_more_than_is_free(appetite: tuple[int, list[str], dict[str, bool]]) -> None:
    free, queues, hungry = appetite
    split = shares(free, queues, hungry)
    assert sum(split.values()) <= max(free, 0)
    assert set(split) <= set(queues)
    assert all(wanted >= 1 for wanted in split.values())


@given(appetites())
def test_nothing_that_is_free_is_left_over(appetite: tuple[int, list[str], dict[str, bool]]) -> None:
    free, queues, hungry = appetite
    if queues and free > 0:
        assert sum(shares(free, queues, hungry).values()) == free


@given(appetites())
def test_with_a_place_for_each_nobody_starves(appetite: tuple[int, list[str], dict[str, bool]]) -> None:
    free, queues, hungry = appetite
    if free >= len(queues):
        assert set(shares(free, queues, hungry)) == set(queues)


@given(appetites())
def test_those_that_had_work_share_evenly(appetite: tuple[int, list[str], dict[str, bool]]) -> None:
    free, queues, hungry = appetite
    split = shares(free, queues, hungry)
    busy = [split.get(queue, 0) for queue in queues if hungry.get(queue, True)]
    if busy:
        assert max(busy) - min(busy) <= 1


def test_a_queue_that_had_nothing_only_gets_a_look() -> None:
    assert shares(10, ["a", "b", "c"], {"c": False}) == {"a": 5, "b": 4, "c": 1}


def test_if_none_had_anything_all_are_equal() -> None:
    assert shares(4, ["a", "b"], {"a": False, "b": False}) == {"a": 2, "b": 2}


def test_nothing_to_share() -> None:
    assert shares(0, ["a"], {}) == shares(5, [], {}) == {}


def test_a_watermark_starts_before_everything() -> None:
    assert Watermark(-1_000, 1, "00000000-0000-7000-8000-000000000000") > START
