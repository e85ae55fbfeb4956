"""Turns: who gets a slot of a limit, and in what order."""

import random

import pytest

from rota.core.limits.turns import (
    Candidate,
    KeyHead,
    LimitChange,
    Shut,
    SlotGrant,
    changes,
    cut_short,
    fair_asks,
    further,
    hand_out,
    in_turn,
    last_looked_at,
)


def waiting(**names: str) -> dict[str, list[Candidate]]:
    """Build candidates: `a="12"` is run 1, then run 2 under a; in `a="1x 2y"` they also need the wider x and y."""
    found: dict[str, list[Candidate]] = {}
    for key, text in names.items():
        words = text.split() if text[-1:].isalpha() else list(text)
        found[key] = [Candidate(word[0], key, tuple(word[1:])) for word in words]
    return found


@pytest.mark.parametrize(
    ("found", "free", "slots", "taken", "full", "blocked"),
    [
        (waiting(a="12"), {"a": 2}, 9, "12", "a", {}),
        (waiting(a="12"), {"a": 3}, 9, "12", "", {}),
        (waiting(a="12"), {"a": 1}, 9, "1", "a", {}),
        (waiting(a=""), {"a": 0}, 9, "", "a", {}),
        (waiting(a=""), {"a": -1}, 9, "", "a", {}),
        (waiting(a=""), {"a": 1}, 9, "", "", {}),
        (waiting(a="123", b="456"), {"a": 9, "b": 9}, 4, "1234", "", {}),
        (waiting(a="123", b="456"), {"a": 1, "b": 9}, 4, "1456", "a", {}),
        (waiting(a="12", b="3"), {"a": 9, "b": 9}, 1, "1", "", {}),
        (waiting(a="1x 2x"), {"a": 9, "x": 1}, 9, "1", "", {}),
        (waiting(a="1x 2x"), {"a": 9, "x": 0}, 9, "", "", {"a": "x"}),
        (waiting(a="1x 2y"), {"a": 9, "x": 0, "y": 1}, 9, "2", "", {}),
        (waiting(a="1x"), {"a": 9}, 9, "", "", {}),
        (waiting(a="1x 2y"), {"a": 9, "x": 0}, 9, "", "", {}),
        (waiting(a="1x", b="2x"), {"a": 9, "b": 9, "x": 1}, 9, "1", "", {"b": "x"}),
        (waiting(a="1xy"), {"a": 9, "x": 1, "y": 0}, 9, "", "", {"a": "y"}),
        (waiting(a="1b", b="2"), {"a": 9, "b": 1}, 9, "1", "b", {}),
    ],
)
def test_who_gets_a_slot(
    found: dict[str, list[Candidate]], free: dict[str, int], slots: int, taken: str, full: str, blocked: dict[str, str]
) -> None:
    handed = hand_out(found, free, slots)
    assert "".join(candidate.run_id for candidate in handed.taken) == taken
    assert handed.full == set(full)
    assert handed.blocked == blocked


def under(key: str, *runs: tuple[int, int]) -> list[Candidate]:
    """Build candidates from pairs of rank and age."""
    return [Candidate(f"{key[-1]}{rank}:{at}", key, (), rank, at) for rank, at in runs]


def order(*lanes: list[Candidate]) -> list[str]:
    waiting = {lane[0].key: lane for lane in lanes}
    return [candidate.run_id for candidate in hand_out(waiting, dict.fromkeys(waiting, 99), 99).taken]


def test_a_higher_priority_comes_before_the_turn_of_another_key() -> None:
    a, b = under("key:work:customer:a", (-5, 9), (-5, 10), (0, 1)), under("key:work:customer:b", (0, 2), (0, 3))
    assert order(b, a) == ["a-5:9", "a-5:10", "b0:2", "a0:1", "b0:3"]


def test_runs_under_different_limits_go_by_age() -> None:
    assert order(under("job:a", (0, 1), (0, 2), (0, 5)), under("job:b", (0, 3), (0, 4))) == [
        *("a0:1", "a0:2", "b0:3", "b0:4", "a0:5")
    ]


def test_keys_of_one_limit_take_turns_in_the_places_that_their_runs_have_by_age() -> None:
    a, b = under("key:work:customer:a", (0, 1), (0, 2)), under("key:work:customer:b", (0, 7))
    assert order(b, a, under("job:other", (0, 3))) == ["b0:7", "a0:1", "r0:3", "a0:2"]


def test_keys_are_looked_at_by_priority_then_the_oldest_limit_then_their_turn() -> None:
    heads = [
        KeyHead("key:work:customer:b", 0, 7, "1"),
        KeyHead("job:other", 0, 3, "2"),
        KeyHead("key:work:customer:c"),
        KeyHead("key:work:customer:a", 0, 1, "3"),
        KeyHead("rate:key:work:customer:a", -1, 9, "4"),
    ]
    assert in_turn(heads) == ["rate:key:work:customer:a", "key:work:customer:b", "key:work:customer:a", "job:other"]


def test_what_becomes_of_limits_after_a_claim() -> None:
    taken = [Candidate("1", "full"), Candidate("2", "open", ("wide-rate",)), Candidate("3", "rate")]
    handed = SlotGrant(taken, {"full", "rate", "was-full"}, {"narrow": "wide"})
    assert changes(handed, {"rate": 70, "wide-rate": 80}, ["empty"]) == [
        LimitChange("empty", Shut.NOBODY_WAITS),
        LimitChange("full", Shut.FULL, served=True),
        LimitChange("narrow", Shut.FULL, "wide"),
        LimitChange("open", Shut.OPEN, served=True),
        LimitChange("rate", Shut.FOR_A_WHILE, served=True, opens_at=70),
        LimitChange("was-full", Shut.FULL),
        LimitChange("wide-rate", None, opens_at=80),
    ]


@pytest.mark.parametrize("seed", range(200))
def test_a_look_at_fair_shares_hands_out_by_priority_what_a_look_at_all_would(seed: int) -> None:
    """And it looks at all again if a share was too little."""
    chance = random.Random(seed)
    keys = [f"key:work:customer:{n}" for n in range(chance.randint(1, 6))] + ["job:other"][: chance.randint(0, 1)]
    ranks = (0,) if chance.random() < 0.3 else (-1, 0, 1)
    everything = {
        key: under(key, *sorted((chance.choice(ranks), chance.randint(1, 99)) for _ in range(chance.randint(1, 12))))
        for key in keys
    }
    free = {key: chance.randint(1, 12) for key in keys}
    slots = chance.randint(1, 12)
    asked = fair_asks(free, slots)
    first = {key: runs[: asked[key]] for key, runs in everything.items()}
    handed = hand_out(first, free, slots)
    full = {key: runs[: min(free[key], slots)] for key, runs in everything.items()}
    expected = hand_out(full, free, slots)
    if not cut_short(asked, free, first, handed, slots):
        assert sorted(one.rank for one in handed.taken) == sorted(one.rank for one in expected.taken)


def test_a_look_at_fair_shares_is_enough_if_all_keys_have_many_runs() -> None:
    keys = [f"key:work:customer:{n}" for n in range(10)]
    free = dict.fromkeys(keys, 100)
    asked = fair_asks(free, 100)
    assert set(asked.values()) == {11}
    first = {key: under(key, *((0, at) for at in range(11))) for key in keys}
    assert not cut_short(asked, free, first, hand_out(first, free, 100), 100)


def test_the_next_look_at_limits_begins_behind_the_last_one_in_the_order_of_the_database() -> None:
    page = [KeyHead("b", at_least=1, served_at=3), KeyHead("B", at_least=1, served_at=3), KeyHead("c", served_at=9)]
    assert last_looked_at(page).key == "B"
    behind = [KeyHead("a", at_least=1, served_at=5), KeyHead("b", 4, 0, "1", at_least=2, served_at=6)]
    assert [head.key for head in further(page, behind)] == ["B", "a", "b", "c"]
