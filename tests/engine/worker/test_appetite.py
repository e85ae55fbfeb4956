"""Test how much a worker claims, from which queue, and from which position."""

from __future__ import annotations

from rota.core.runs.claim import START, Claim, QueueRequest, Watermark, shares
from rota.engine.worker.appetite import ClaimPositions, Rate, buffer_target


def claim(queue: str, place: int, *, rank: int = 0) -> Claim:
    return Claim(
        run_id=f"{place:08}-0000-0000-0000-000000000000",
        fence=1,
        attempt=1,
        job="job",
        job_version=1,
        payload="{}",
        queue=queue,
        rank=rank,
        run_at=place,
        scope_kind="global",
        scope_id="global",
        key=None,
        overrides=None,
        origin_id=None,
        max_attempts=1,
        on_lost="retry",
        created_at=0,
    )


class Queues:
    """Return the claims available after the requested mark."""

    def __init__(self, **waiting: int) -> None:
        self.claims = {queue: [claim(queue, place) for place in range(count)] for queue, count in waiting.items()}

    def add(self, extra: Claim) -> None:
        self.claims[extra.queue].append(extra)
        self.claims[extra.queue].sort(key=_mark)

    def take(self, asks: tuple[QueueRequest, ...]) -> list[Claim]:
        taken = []
        for ask in asks:
            found = [one for one in self.claims.get(ask.queue, []) if _mark(one) > ask.after][: ask.wanted]
            self.claims[ask.queue] = [one for one in self.claims.get(ask.queue, []) if one not in found]
            taken += found
        return taken


def _mark(one: Claim) -> Watermark:
    return Watermark(one.rank, one.run_at, one.run_id)


def look(positions: ClaimPositions, queues: Queues, wanted: int, now: float = 0.0) -> tuple[list[Claim], bool]:
    asks = positions.requests(wanted, now)
    claims = queues.take(asks)
    return claims, positions.learn(asks, claims, took=0.001)


def test_places_are_shared_evenly() -> None:
    assert shares(10, ["a", "b", "c"], {}) == {"a": 4, "b": 3, "c": 3}
    assert shares(0, ["a"], {}) == {}
    assert shares(5, [], {}) == {}


def test_a_queue_that_had_nothing_only_gets_a_look() -> None:
    assert shares(10, ["a", "b"], {"a": True, "b": False}) == {"a": 9, "b": 1}


def test_it_looks_behind_what_it_has_claimed() -> None:
    positions, queues = ClaimPositions(["a"]), Queues(a=20)
    look(positions, queues, 5)
    (ask,) = positions.requests(5, 0.1)
    assert ask.after == Watermark(0, 4, claim("a", 4).run_id)


def test_a_higher_priority_behind_the_mark_is_found_within_the_rescan_interval() -> None:
    positions, queues = ClaimPositions(["a"]), Queues(a=100)
    look(positions, queues, 2, now=10.0)
    queues.add(claim("a", 500, rank=-9))
    assert not any(one.rank == -9 for one in look(positions, queues, 2, now=10.2)[0])
    assert look(positions, queues, 2, now=10.5)[0][0].rank == -9


def test_a_higher_priority_is_found_at_once_when_the_queue_is_short_of_work() -> None:
    positions, queues = ClaimPositions(["a"]), Queues(a=3)
    look(positions, queues, 2, now=10.0)
    queues.add(claim("a", 500, rank=-9))
    _, exhausted = look(positions, queues, 2, now=10.1)
    assert not exhausted
    assert look(positions, queues, 2, now=10.1)[0][0].rank == -9


def test_a_higher_priority_is_found_within_five_seconds_however_slow_scans_are() -> None:
    positions, queues = ClaimPositions(["a"]), Queues(a=100)
    asks = positions.requests(2, 10.0)
    positions.learn(asks, queues.take(asks), took=60.0)
    look(positions, queues, 2, now=10.5)  # still the interval of before
    queues.add(claim("a", 500, rank=-9))
    assert not any(one.rank == -9 for one in look(positions, queues, 2, now=15.4)[0])
    assert look(positions, queues, 2, now=15.6)[0][0].rank == -9


def test_a_slow_scan_is_repeated_less_often() -> None:
    positions, queues = ClaimPositions(["a"]), Queues(a=100)
    asks = positions.requests(2, 10.0)
    positions.learn(asks, queues.take(asks), took=1.0)
    look(positions, queues, 2, now=10.5)  # still the interval of before
    asks = positions.requests(2, 12.0)
    assert asks[0].after != START
    assert positions.requests(2, 21.0)[0].after == START


def test_exhausted_means_all_queues_looked_through_from_their_start() -> None:
    positions, queues = ClaimPositions(["a", "b"]), Queues(a=3, b=0)
    assert look(positions, queues, 4) == ([claim("a", 0), claim("a", 1)], False)
    claims, exhausted = look(positions, queues, 4)
    assert (claims, exhausted) == ([claim("a", 2)], False)
    assert look(positions, queues, 4) == ([], True)


def test_with_fewer_places_than_queues_each_has_its_turn() -> None:
    positions, queues = ClaimPositions(["a", "b", "c"]), Queues(a=100, b=100, c=100)
    turns = [look(positions, queues, 1)[0][0].queue for _ in range(6)]
    assert turns == ["a", "b", "c", "a", "b", "c"]


def test_a_queue_that_was_empty_is_found_again_though_another_fills_every_place() -> None:
    positions, queues = ClaimPositions(["a", "b"]), Queues(a=100, b=0)
    for _ in range(5):
        look(positions, queues, 1, now=10.0)
    queues.add(claim("b", 0))
    seen = [one.queue for turn in range(4) for one in look(positions, queues, 1, now=10.6 + turn / 100)[0]]
    assert "b" in seen


def test_with_one_place_it_does_not_rest_before_every_queue_was_asked() -> None:
    positions, queues = ClaimPositions(["a", "b", "c"]), Queues(a=0, b=0, c=1)
    seen = []
    for _ in range(6):
        claims, exhausted = look(positions, queues, 1)
        seen += claims
        if exhausted:
            break
    assert [one.queue for one in seen] == ["c"]


def test_with_one_place_it_rests_once_every_queue_was_empty() -> None:
    positions, queues = ClaimPositions(["a", "b", "c"]), Queues()
    assert [look(positions, queues, 1)[1] for _ in range(6)] == [False, False, True] * 2


def test_nothing_is_buffered_for_slow_work() -> None:
    assert buffer_target(0.0) == 0
    assert buffer_target(9.0) == 0
    assert buffer_target(1_000.0) == 100
    assert buffer_target(1e6) == buffer_target(1e9)


def test_the_rate_follows_what_is_finished() -> None:
    rate = Rate()
    rate.measure(0.0)
    for step in range(1, 21):
        rate.add(100)
        rate.measure(step * 0.1)
    assert round(rate.per_second) == 1_000
    for step in range(21, 30):
        rate.measure(step * 0.1)
    assert round(rate.per_second) == 0


def test_full_queues_are_claimed_by_weight_however_few_places_are_free() -> None:
    for places in (1, 4, 16):
        positions, queues = ClaimPositions(["a", "b"], {"a": 3, "b": 1}), Queues(a=500, b=500)
        taken = [one.queue for _ in range(64 // places) for one in look(positions, queues, places)[0]]
        assert (taken.count("a"), taken.count("b")) == (48, 16)


def test_a_light_queue_has_all_places_while_the_heavy_one_is_empty() -> None:
    positions, queues = ClaimPositions(["a", "b"], {"a": 1_000, "b": 1}), Queues(a=0, b=100)
    seen = [one.queue for _ in range(12) for one in look(positions, queues, 1)[0]]
    assert seen.count("b") >= 11


def test_an_empty_queue_beside_them_does_not_spoil_the_weights() -> None:
    """Each rescan asks it again: the look it gets must not cost the light one its turn."""
    positions, queues = ClaimPositions(["a", "b", "c"], {"a": 3, "b": 1, "c": 1}), Queues(a=500, b=500, c=0)
    taken: list[str] = []
    now = 0.0
    while len(taken) < 80:
        now += 1.0
        claims, _ = look(positions, queues, 1, now)
        if not claims:
            claims, _ = look(positions, queues, 1, now + 0.001)
        taken += [one.queue for one in claims]
    assert 15 <= taken.count("b") <= 25


def test_with_weights_it_rests_once_every_queue_was_empty() -> None:
    positions, queues = ClaimPositions(["a", "b", "c"], {"a": 50, "b": 2, "c": 1}), Queues()
    assert [look(positions, queues, 1)[1] for _ in range(6)] == [False, False, True] * 2
