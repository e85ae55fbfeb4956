"""Table of legal state changes; every decision about a run must be in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.runs.outcome import ON_LOST, End, Lease, Report, Requeue, after_report
from rota.core.states import FINAL_STATES, LEGAL_CHANGES, LIVE_STATES, Outcome, RunState

MOMENTS = st.none() | st.integers(0, 2**53)

leases = st.builds(
    Lease,
    run_id=st.just("id"),
    fence=st.integers(1, 10**6),
    attempt=st.integers(1, 20),
    worker_id=st.just("w"),
    claimed_at=st.integers(0, 2**53),
    cancel_at=MOMENTS,
    max_attempts=st.integers(1, 20),
    on_lost=st.sampled_from(ON_LOST),
    queue=st.just("q"),
    overdue=st.integers(0, 1),
)
reports = st.builds(
    Report,
    run_id=st.just("id"),
    fence=st.just(1),
    outcome=st.sampled_from(Outcome),
    retry_in=MOMENTS,
    began=st.booleans(),
)


def lease(**facts: object) -> Lease:
    plain = {
        "run_id": "id",
        "fence": 5,
        "attempt": 2,
        "worker_id": "w",
        "claimed_at": 0,
        "cancel_at": None,
        "max_attempts": 4,
        "on_lost": "retry",
        "queue": "q",
        "job": "j",
    }
    return Lease(**{**plain, **facts})  # type: ignore[arg-type]


def report(outcome: Outcome, **facts: object) -> Report:
    return Report("id", 5, outcome, **facts)  # type: ignore[arg-type]


def state_before(lease: Lease) -> RunState:
    return RunState.RUNNING if lease.cancel_at is None else RunState.CANCELLING


def state_after(decision: Requeue | End) -> RunState:
    if isinstance(decision, End):
        return decision.state
    return RunState.SCHEDULED if decision.delay else RunState.QUEUED


def test_every_state_has_its_row() -> None:
    assert set(LEGAL_CHANGES) == set(RunState)


def test_final_states_have_no_exit_and_live_ones_have() -> None:
    assert {state for state in RunState if state.is_final} == FINAL_STATES
    assert FINAL_STATES.isdisjoint(LIVE_STATES)
    assert set(RunState) == FINAL_STATES | LIVE_STATES
    assert {state.value for state in FINAL_STATES} == {
        "succeeded", "failed", "timed_out", "cancelled", "expired", "skipped",
    }  # fmt: skip


def test_nothing_leads_back_to_itself() -> None:
    assert [state for state, after in LEGAL_CHANGES.items() if state in after] == []


def test_every_state_can_be_reached_and_every_live_one_left() -> None:
    reached = {RunState.SCHEDULED, RunState.QUEUED}
    while more := {after for state in reached for after in LEGAL_CHANGES[state]} - reached:
        reached |= more
    assert reached == set(RunState)
    ending = set(FINAL_STATES)
    while more := {state for state, after in LEGAL_CHANGES.items() if after & ending} - ending:
        ending |= more
    assert ending == set(RunState)


@given(leases, reports)
def test_every_decision_is_a_legal_change(lease: Lease, report: Report) -> None:
    assert state_after(after_report(lease, report)) in LEGAL_CHANGES[state_before(lease)]


@given(leases, reports)
def test_a_fence_never_shrinks_and_grows_when_a_lease_is_taken_away(lease: Lease, report: Report) -> None:
    by_reaper = lease.overdue > 0 and report.outcome is not Outcome.SUCCEEDED
    taken_away = report.outcome in (Outcome.LOST, Outcome.HANDED_BACK) or by_reaper
    assert after_report(lease, report).fence == lease.fence + taken_away


@given(leases, reports)
def test_an_attempt_is_given_back_only_when_it_did_not_count(lease: Lease, report: Report) -> None:
    decision = after_report(lease, report)
    if isinstance(decision, Requeue):
        free = report.outcome in (Outcome.HANDED_BACK, Outcome.SNOOZED)
        assert decision.attempt == lease.attempt - free
        assert decision.attempt >= 0


@given(leases)
def test_attempts_never_exceed_the_budget(lease: Lease) -> None:
    decision = after_report(lease, report(Outcome.LOST))
    assert isinstance(decision, End) or decision.attempt < lease.max_attempts


@given(leases, reports)
def test_success_is_what_happened(lease: Lease, report: Report) -> None:
    if report.outcome is Outcome.SUCCEEDED:
        assert after_report(lease, report) == End(RunState.SUCCEEDED, lease.fence)


@pytest.mark.parametrize(
    ("outcome", "facts", "decision"),
    [
        (Outcome.SUCCEEDED, {}, End(RunState.SUCCEEDED, 5)),
        (Outcome.FAILED, {}, End(RunState.FAILED, 5)),
        (Outcome.FAILED, {"retry_in": 7}, Requeue(7, 2, 5)),
        (Outcome.TIMED_OUT, {}, End(RunState.TIMED_OUT, 5)),
        (Outcome.TIMED_OUT, {"retry_in": 0}, Requeue(0, 2, 5)),
        (Outcome.CANCELLED, {}, End(RunState.CANCELLED, 5)),
        (Outcome.SNOOZED, {"retry_in": 9}, Requeue(9, 1, 5)),
        (Outcome.HANDED_BACK, {}, Requeue(0, 1, 6, keeps_place=True)),
        (Outcome.LOST, {}, Requeue(0, 2, 6, keeps_place=True)),
    ],
)
def test_what_follows_a_report(outcome: Outcome, facts: dict[str, object], decision: Requeue | End) -> None:
    assert after_report(lease(), report(outcome, **facts)) == decision


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.SUCCEEDED])
def test_while_cancelling_everything_but_success_is_cancelled(outcome: Outcome) -> None:
    decision = after_report(lease(cancel_at=1), report(outcome, retry_in=0))
    assert isinstance(decision, End)
    assert decision.state is RunState.CANCELLED


@pytest.mark.parametrize(
    ("facts", "decision"),
    [
        ({}, Requeue(0, 2, 6, keeps_place=True)),
        ({"attempt": 4}, End(RunState.EXPIRED, 6)),
        ({"on_lost": "fail"}, End(RunState.EXPIRED, 6)),
        ({"cancel_at": 1}, End(RunState.CANCELLED, 6)),
        ({"cancel_at": 1, "on_lost": "fail", "attempt": 4}, End(RunState.CANCELLED, 6)),
    ],
)
def test_what_follows_a_lost_lease(facts: dict[str, object], decision: Requeue | End) -> None:
    assert after_report(lease(**facts), report(Outcome.LOST)) == decision


@pytest.mark.parametrize(("began", "state"), [(True, RunState.EXPIRED), (False, RunState.QUEUED)])
def test_a_fragile_run_is_given_back_only_before_it_began(began: bool, state: RunState) -> None:
    decision = after_report(lease(on_lost="fail"), report(Outcome.HANDED_BACK, began=began))
    assert state_after(decision) is state
