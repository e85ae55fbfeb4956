"""Shares: how a worker splits its free slots between queues."""

from hypothesis import given
from hypothesis import strategies as st

from rota.core.runs.claim import START, Watermark, busy_of, shares, still_owed

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


@st.composite
def weighed(draw: st.DrawFn) -> tuple[list[str], dict[str, int]]:
    queues = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1))
    return queues, {queue: draw(st.integers(1, 20)) for queue in queues}


@given(appetites(), st.data())
def test_weights_change_neither_the_sum_nor_who_is_looked_at(
    appetite: tuple[int, list[str], dict[str, bool]], data: st.DataObject
) -> None:
    free, queues, hungry = appetite
    weights = {queue: data.draw(st.integers(1, 20)) for queue in queues}
    owed = {queue: data.draw(st.floats(-1, 1)) for queue in queues}
    split = shares(free, queues, hungry, weights, owed)
    assert sum(split.values()) == sum(shares(free, queues, hungry).values())
    assert all(wanted >= 1 for wanted in split.values())
    if free >= len(queues):
        assert set(split) == set(queues)


@given(st.integers(1, 200), weighed())
def test_places_are_split_by_weight(free: int, given_weights: tuple[list[str], dict[str, int]]) -> None:
    queues, weights = given_weights
    split = shares(free, queues, {}, weights)
    total = sum(weights.values())
    quotas = {queue: free * weights[queue] / total for queue in queues}
    if min(quotas.values()) >= 1:
        assert all(abs(split[queue] - quotas[queue]) < 1 for queue in queues)


@given(weighed(), st.lists(st.integers(1, 3), min_size=1, max_size=60))
def test_few_places_at_a_time_keep_the_weights_too(
    given_weights: tuple[list[str], dict[str, int]], claims: list[int]
) -> None:
    """Keep the weights while there are fewer slots than queues; with enough, each queue gets one."""
    queues, weights = given_weights
    claims = [places for places in claims if places < len(queues)]
    owed: dict[str, float] = {}
    got = dict.fromkeys(queues, 0)
    for places in claims:
        split = shares(places, queues, {}, weights, owed)
        owed = still_owed(split, busy_of(queues, {}), weights, owed)
        for queue, count in split.items():
            got[queue] += count
    for queue in queues:
        assert abs(got[queue] - sum(claims) * weights[queue] / sum(weights.values())) <= len(queues)


def test_three_to_one() -> None:
    assert shares(8, ["a", "b"], {}, {"a": 3, "b": 1}) == {"a": 6, "b": 2}
    assert shares(10, ["a", "b"], {}, {"a": 100, "b": 1}) == {"a": 9, "b": 1}
    assert shares(10, ["a", "b"], {"a": False}, {"a": 100, "b": 1}) == {"b": 9, "a": 1}
