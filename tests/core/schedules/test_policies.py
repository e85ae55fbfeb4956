"""Policies for lateness, overlap and failure: what is accepted, and what is refused."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota.core.calendar.rules import Rule
from rota.core.calendar.triggers import every
from rota.core.jobs.retry import Delays, Exponential
from rota.core.schedules.policies import (
    CatchUp,
    CatchUpMode,
    Failure,
    FailureMode,
    Overlap,
    OverlapMode,
    catch_up_of,
    failure_of,
    overlap_of,
)
from rota.core.schedules.schedule import ScheduleDefinition
from rota.core.schedules.view import policies
from rota.errors import BadDuration, Invalid, UnknownOption

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
LATEST = CatchUp()
EACH_MODE = [
    *(CatchUp(mode=mode) for mode in CatchUpMode),
    *(Overlap(mode=mode) for mode in OverlapMode),
    *(Failure(mode=mode) for mode in FailureMode),
]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, CatchUp(mode=CatchUpMode.LATEST, window=24 * HOUR)),
        ("none", CatchUp(mode=CatchUpMode.NONE, grace=60 * SECOND)),
        ("latest", CatchUp()),
        ("all", CatchUp(mode=CatchUpMode.ALL, keep=1_000, per_tick=100)),
        ({"mode": "all", "keep": 3}, CatchUp(mode=CatchUpMode.ALL, keep=3)),
        ({"mode": "all", "per_tick": 5, "window": "2h"}, CatchUp(mode=CatchUpMode.ALL, per_tick=5, window=2 * HOUR)),
        ({"mode": "none", "grace": "0s"}, CatchUp(mode=CatchUpMode.NONE, grace=timedelta(0))),
        ({"window": "1h"}, CatchUp(window=HOUR)),
        ({}, CatchUp()),
        (CatchUp(mode=CatchUpMode.ALL, keep=7), CatchUp(mode=CatchUpMode.ALL, keep=7)),
    ],
)
def test_what_people_write_for_catch_up(written: Any, meant: CatchUp) -> None:
    assert catch_up_of(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, Overlap(mode=OverlapMode.SKIP)),
        ("queue_one", Overlap(mode=OverlapMode.QUEUE_ONE)),
        ({"mode": "parallel", "max_overlap": 3}, Overlap(mode=OverlapMode.PARALLEL, max_overlap=3)),
        ({"mode": "parallel", "max_overlap": None}, Overlap(mode=OverlapMode.PARALLEL)),
        (Overlap(mode=OverlapMode.CANCEL_PREVIOUS), Overlap(mode=OverlapMode.CANCEL_PREVIOUS)),
    ],
)
def test_what_people_write_for_overlap(written: Any, meant: Overlap) -> None:
    assert overlap_of(written, LATEST) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (None, Failure(mode=FailureMode.RUN_NEW)),
        ("pause", Failure(mode=FailureMode.PAUSE)),
        ({"mode": "retry", "max_attempts": 3}, Failure(mode=FailureMode.RETRY, max_attempts=3)),
        ({"mode": "backoff", "backoff": "5m"}, Failure(mode=FailureMode.BACKOFF, backoff=Delays((5 * MINUTE,)))),
        (
            {"mode": "backoff", "backoff": ["1m", "5m"]},
            Failure(mode=FailureMode.BACKOFF, backoff=Delays((MINUTE, 5 * MINUTE))),
        ),
        ({"mode": "backoff", "backoff": "exponential"}, Failure(mode=FailureMode.BACKOFF, backoff=Exponential())),
        (
            {"mode": "backoff", "backoff": {"base": "10s", "factor": 3, "cap": "1m"}},
            Failure(mode=FailureMode.BACKOFF, backoff=Exponential(base=10 * SECOND, factor=3, cap=MINUTE)),
        ),
        (
            {"mode": "half_open", "threshold": 2, "cooldown": "30s"},
            Failure(mode=FailureMode.HALF_OPEN, threshold=2, cooldown=30 * SECOND),
        ),
        (Failure(mode=FailureMode.HALF_OPEN, threshold=2), Failure(mode=FailureMode.HALF_OPEN, threshold=2)),
    ],
)
def test_what_people_write_for_failure(written: Any, meant: Failure) -> None:
    assert failure_of(written) == meant


def test_plan_times_that_are_all_caught_up_queue_unless_somebody_says_otherwise() -> None:
    all_of_them = CatchUp(mode=CatchUpMode.ALL)
    assert overlap_of(None, all_of_them) == Overlap(mode=OverlapMode.QUEUE_ALL)
    assert overlap_of("skip", all_of_them) == Overlap(mode=OverlapMode.SKIP)
    assert overlap_of(None, LATEST) == Overlap(mode=OverlapMode.SKIP)


@pytest.mark.parametrize(
    "written",
    [
        {"mode": "all", "keep": 0},
        {"mode": "all", "keep": -1},
        {"mode": "all", "keep": 100_001},
        {"mode": "all", "keep": True},
        {"mode": "all", "keep": 2.5},
        {"mode": "all", "keep": "3"},
        {"mode": "all", "keep": None},
        {"mode": "all", "per_tick": 0},
        {"mode": "all", "per_tick": -5},
        {"window": "0s"},
        {"window": "-1h"},
        {"window": 3_600},
        {"window": None},
        {"window": "200000d"},
        {"mode": "none", "grace": "-1s"},
        {"mode": "none", "grace": "soon"},
        {"mode": None},
        {"mode": ["all"]},
        {"mode": 7},
        {3: 4},
        7,
        True,
        ["all"],
        object(),
        CatchUp(mode=CatchUpMode.ALL, keep=0),
        CatchUp(mode="never"),  # type: ignore[arg-type]
    ],
)
def test_a_catch_up_that_makes_no_sense(written: Any) -> None:
    with pytest.raises(Invalid):
        catch_up_of(written)


@pytest.mark.parametrize(
    "written",
    [
        {"mode": "parallel", "max_overlap": 0},
        {"mode": "parallel", "max_overlap": "2"},
        {"mode": "parallel", "max_overlap": False},
        {"mode": ""},
        5,
        Overlap(mode=OverlapMode.PARALLEL, max_overlap=-1),
    ],
)
def test_an_overlap_that_makes_no_sense(written: Any) -> None:
    with pytest.raises(Invalid):
        overlap_of(written, LATEST)


@pytest.mark.parametrize(
    "written",
    [
        {"mode": "retry", "max_attempts": 0},
        {"mode": "retry", "max_attempts": 1.5},
        {"mode": "backoff", "backoff": []},
        {"mode": "backoff", "backoff": Delays(())},
        {"mode": "backoff", "backoff": Delays((-SECOND,))},
        {"mode": "backoff", "backoff": ["-1m"]},
        {"mode": "backoff", "backoff": 60},
        {"mode": "backoff", "backoff": {"bass": "1m"}},
        {"mode": "backoff", "backoff": {"factor": "twice"}},
        {"mode": "backoff", "backoff": {"factor": 0.5}},
        {"mode": "backoff", "backoff": {"base": 60}},
        {"mode": "backoff", "backoff": Exponential(factor=0.1)},
        {"mode": "half_open", "threshold": 0},
        {"mode": "half_open", "threshold": None},
        {"mode": "half_open", "cooldown": "0s"},
        {"mode": "half_open", "cooldown": 5},
        Failure(mode=FailureMode.HALF_OPEN, cooldown=timedelta(0)),
    ],
)
def test_a_failure_policy_that_makes_no_sense(written: Any) -> None:
    with pytest.raises(Invalid):
        failure_of(written)


@pytest.mark.parametrize(
    ("policy_of", "written", "field"),
    [
        (catch_up_of, {"mode": "latest", "keep": 3}, "catch_up.keep"),
        (catch_up_of, {"keep": 3}, "catch_up.keep"),
        (catch_up_of, {"mode": "none", "per_tick": 3}, "catch_up.per_tick"),
        (catch_up_of, {"mode": "none", "window": "1h"}, "catch_up.window"),
        (catch_up_of, {"mode": "all", "grace": "1m"}, "catch_up.grace"),
        (catch_up_of, CatchUp(mode=CatchUpMode.LATEST, keep=3), "catch_up.keep"),
        (failure_of, {"mode": "run_new", "max_attempts": 3}, "failure.max_attempts"),
        (failure_of, {"mode": "skip", "backoff": "1m"}, "failure.backoff"),
        (failure_of, {"mode": "backoff", "threshold": 3}, "failure.threshold"),
        (failure_of, {"mode": "pause", "cooldown": "1m"}, "failure.cooldown"),
        (lambda written: overlap_of(written, LATEST), {"mode": "skip", "max_overlap": 2}, "overlap.max_overlap"),
        (lambda written: overlap_of(written, LATEST), Overlap(max_overlap=2), "overlap.max_overlap"),
    ],
)
def test_a_part_that_the_mode_has_no_use_for_is_named(policy_of: Any, written: Any, field: str) -> None:
    with pytest.raises(Invalid, match=f"{field} means nothing with .* belongs to "):
        policy_of(written)


def test_misspelt_words_are_answered_with_the_one_that_was_meant() -> None:
    with pytest.raises(Invalid, match="did you mean 'latest'"):
        catch_up_of("lastest")
    with pytest.raises(Invalid, match="did you mean 'cancel_previous'"):
        overlap_of("cancel_prev", LATEST)
    with pytest.raises(Invalid, match="did you mean 'half_open'"):
        failure_of({"mode": "halfopen"})
    with pytest.raises(UnknownOption, match="did you mean 'per_tick'"):
        catch_up_of({"mode": "all", "per_tic": 5})
    with pytest.raises(UnknownOption, match=r"failure has no option 'treshold' .*did you mean 'threshold'"):
        failure_of({"mode": "half_open", "treshold": 5})
    with pytest.raises(UnknownOption, match="did you mean 'base'"):
        failure_of({"mode": "backoff", "backoff": {"bas": "1m"}})


def test_a_bare_number_is_no_duration() -> None:
    with pytest.raises(BadDuration, match="write a number and a unit"):
        catch_up_of({"window": 86_400})


def test_what_was_given_is_not_changed() -> None:
    written = {"mode": "all", "window": "1h"}
    catch_up_of(written)
    assert written == {"mode": "all", "window": "1h"}


@pytest.mark.parametrize(
    "policy",
    [
        catch_up_of({"mode": "all", "keep": 3, "window": "90m"}),
        overlap_of({"mode": "parallel", "max_overlap": 2}, LATEST),
        failure_of({"mode": "backoff", "backoff": ["1m", "5m"]}),
        failure_of({"mode": "half_open", "threshold": 2, "cooldown": "30s"}),
    ],
)
def test_a_policy_survives_json(policy: CatchUp | Overlap | Failure) -> None:
    assert msgspec.json.decode(msgspec.json.encode(policy), type=type(policy)) == policy


@pytest.mark.parametrize("policy", EACH_MODE)
def test_every_mode_has_words_and_answers(policy: CatchUp | Overlap | Failure) -> None:
    kind = {CatchUp: "catch_up", Overlap: "overlap", Failure: "failure"}[type(policy)]
    definition = ScheduleDefinition(job="j", rule=Rule(every("1m")), **{kind: policy})  # type: ignore[arg-type]
    assert len(dict(policies(definition))[kind]) > 10
    for name, value in vars(type(policy)).items():
        assert not isinstance(value, property) or isinstance(getattr(policy, name), bool)
