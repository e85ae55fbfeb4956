"""Tallies: the words of each reason for a skip or a miss, and the kind of that reason."""

from datetime import timedelta

from rota.core.planning.catch_up import choose
from rota.core.planning.overlap_and_failure import Lane, LiveRun, Skip, decide
from rota.core.planning.tally import MISSED, SKIPPED, Tally, missed_kind, skip_kind
from rota.core.planning.tick import Planned
from rota.core.schedules.policies import CatchUp, CatchUpMode, Failure, FailureMode, Overlap, OverlapMode
from rota.values.scope import GLOBAL
from tests.support.schedules.plan_times import Steady

SECOND = 1_000_000


def test_every_way_of_missing_has_its_kind() -> None:
    policies = [
        CatchUp(mode=CatchUpMode.NONE),
        CatchUp(mode=CatchUpMode.NONE, grace=timedelta(hours=2)),
        CatchUp(mode=CatchUpMode.ALL, keep=2),
        CatchUp(mode=CatchUpMode.LATEST),
    ]
    day = 86_400 * SECOND
    found = {
        missed_kind(gap.reason)
        for policy in policies
        for gap in choose(policy, Steady(3_600 * SECOND), 0, 10 * day + 100 * SECOND).missed
    }
    assert found == set(MISSED)


def test_every_way_of_skipping_has_its_kind() -> None:
    busy, failed = Lane((LiveRun("r"),)), Lane((), failed=True, failures=1)
    by_overlap = decide(Overlap(mode=OverlapMode.SKIP), Failure(), busy, 0, 1)
    by_failure = decide(Overlap(mode=OverlapMode.SKIP), Failure(mode=FailureMode.SKIP), failed, 0, 1)
    assert isinstance(by_overlap, Skip)
    assert isinstance(by_failure, Skip)
    kinds = [skip_kind(by_overlap), skip_kind(by_failure), skip_kind(Skip("job 'a' is disabled"))]
    assert kinds == ["overlap", "failure", "disabled"]
    assert set(kinds) <= set(SKIPPED)


def test_what_runs_early_by_jitter_is_not_late() -> None:
    tally = Tally()
    for eligible_at in (4 * SECOND, 9 * SECOND):
        tally.ran_or_waits(("job", "queue"), Planned("r", GLOBAL, 0, eligible_at, Skip("")), 5 * SECOND)
    assert tally.lateness == [SECOND, 0]
    assert Tally().lateness == []
