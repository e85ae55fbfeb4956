"""Rules of attention, and snoozes: what is noticed without anybody having asked for it, and when it stays quiet."""

from typing import Any

import msgspec
import pytest

from rota.core.ledger.database_state import DatabaseStanding
from rota.core.monitoring.attention import (
    KINDS,
    PROBLEM,
    WARNING,
    Attention,
    Snooze,
    checked_kind,
    item,
    judge,
    snooze_length,
)
from rota.core.monitoring.attention_facts import (
    Delivery,
    Facts,
    FailingJob,
    FailingLane,
    GoneWorker,
    LongRun,
    MissedTimes,
    PausedSchedule,
    ProgramVersion,
    QueueDepth,
    SkippedTimes,
    StarvedLimit,
)
from rota.core.monitoring.attention_rules import DAY, ENOUGH, HOUR, MINUTE, SECOND, STARVED, items_of
from rota.core.monitoring.doctor import OperatorPause, Symptoms
from rota.errors import Invalid
from rota.values.instants import instant, micros_at

NOW = 1_750_000_000_000_000


def facts(**changes: Any) -> Facts:
    return Facts(symptoms=Symptoms(now=NOW), **changes)


def items(**changes: Any) -> list[Attention]:
    return list(items_of(facts(**changes)))


def lane(failures: int, scope: tuple[str, str] = ("global", "global")) -> FailingLane:
    return FailingLane("backup", *scope, failures, NOW - HOUR)


def long_run(minutes: int, *, p95: int = 60 * SECOND, counted: int = 100) -> LongRun:
    return LongRun("r1", "work", "global", "global", "w@1", NOW - minutes * MINUTE, p95, counted)


def failing_job(failed: int, ended: int = 50, week: tuple[int, int] = (10, 1_000)) -> FailingJob:
    return FailingJob("work", failed, ended, *week, NOW - HOUR)


def depths(*runs: int, queue: str = "mail") -> list[QueueDepth]:
    return [QueueDepth(queue, NOW - (len(runs) - no) * 5 * MINUTE, count) for no, count in enumerate(runs)]


def delivery(no: int, error: str | None = None) -> Delivery:
    return Delivery("ops", f"r{no}", NOW - (10 - no) * MINUTE, error is None, error)


def standing(since: int, *, held: bool = False, lost: int = 0) -> DatabaseStanding:
    return DatabaseStanding("postgresql", 1, held, instant(since), lost_runs=lost)


RULES: list[tuple[str, str | None, str, dict[str, Any]]] = [
    ("schedule_failing", "backup", PROBLEM, {"failing": [lane(18)]}),
    ("schedule_failing", "backup tenant/7", PROBLEM, {"failing": [lane(3, ("tenant", "7"))]}),
    ("schedule_missed", "backup", PROBLEM, {"missed": [MissedTimes("backup", "no planner", NOW - HOUR, NOW, 2)]}),
    ("schedule_skipped", "bill", WARNING, {"skipped": [SkippedTimes("bill", "it runs", NOW, NOW, 1, 1)]}),
    ("schedule_skipped", "bill", WARNING, {"skipped": [SkippedTimes("bill", "", NOW, NOW, 1, None)]}),
    ("worker_gone", "w@1", PROBLEM, {"gone": [GoneWorker("w@1", NOW - MINUTE, held=["r1"])]}),
    ("worker_gone", "w@1", PROBLEM, {"gone": [GoneWorker("w@1", NOW - MINUTE, lost=["r1"])]}),
    ("worker_gone", "w@1", WARNING, {"gone": [GoneWorker("w@1", NOW - MINUTE)]}),
    ("run_slow", "r1", WARNING, {"long_runs": [long_run(19)]}),
    ("failure_rate", "work", PROBLEM, {"failing_jobs": [failing_job(20)]}),
    ("failure_rate", "work", PROBLEM, {"failing_jobs": [failing_job(25, week=(0, 0))]}),
    ("queue_growing", "mail", WARNING, {"depths": depths(10, 50, 90, 200)}),
    ("limit_starves", "job:work", WARNING, {"limits": [StarvedLimit("job:work", 4, NOW - STARVED - 1)]}),
    ("delivery_refused", "ops", PROBLEM, {"deliveries": [delivery(1), delivery(2, "404"), delivery(3, "404")]}),
    ("schedule_paused", "news", WARNING, {"paused_schedules": [PausedSchedule("news", NOW - DAY - 1, "ann", "why")]}),
    ("queue_paused", "print", WARNING, {"held": [OperatorPause("queue", "print", NOW - DAY - 1, "ann", None)]}),
    ("versions_apart", None, WARNING, {"versions": [ProgramVersion("1.0", 9, 2), ProgramVersion("1.1", 10, 1)]}),
    ("epoch_new", None, PROBLEM, {"standing": standing(NOW - HOUR)}),
    ("database_copied", None, PROBLEM, {"standing": standing(NOW - 30 * DAY, held=True)}),
]


@pytest.mark.parametrize(("kind", "subject", "severity", "changes"), RULES)
def test_what_is_noticed(kind: str, subject: str | None, severity: str, changes: dict[str, Any]) -> None:
    (found,) = items(**changes)
    assert (found.kind, found.subject, found.severity) == (kind, subject, severity)
    assert found.text
    assert kind in KINDS


@pytest.mark.parametrize(
    "changes",
    [
        {"failing": [lane(2)]},
        {"skipped": [SkippedTimes("news", "it runs", NOW, NOW, 3, 288)]},
        {"long_runs": [long_run(2)]},
        {"long_runs": [long_run(19, counted=ENOUGH - 1)]},
        {"long_runs": [long_run(0, p95=SECOND // 100)]},
        {"failing_jobs": [failing_job(8)]},
        {"failing_jobs": [failing_job(20, week=(500, 1_000))]},
        {"failing_jobs": [failing_job(10, ended=ENOUGH - 1)]},
        {"failing_jobs": [failing_job(20, week=(0, 0))]},
        {"depths": depths(10, 20, 30, 40)},
        {"depths": depths(900, 200, 150, 400)},
        {"depths": depths(150, 160, 170, 180)},
        {"limits": [StarvedLimit("job:work", 4, NOW - STARVED)]},
        {"deliveries": [delivery(1, "404"), delivery(2)]},
        {"paused_schedules": [PausedSchedule("news", NOW - DAY, "ann", None)]},
        {"versions": [ProgramVersion("1.0", 9, 2)]},
        {"standing": standing(NOW - 8 * DAY)},
        {"standing": DatabaseStanding("postgresql", 0, held=False)},
    ],
)
def test_what_is_usual_stays_quiet(changes: dict[str, Any]) -> None:
    assert items(**changes) == []


def test_runs_that_a_restore_has_lost_weigh_more() -> None:
    (found,) = items(standing=standing(NOW - HOUR, lost=3))
    assert "3 runs" in found.text
    assert found.weight > items(standing=standing(NOW - HOUR))[0].weight
    (copied,) = items(standing=standing(NOW - HOUR, held=True))
    assert copied.action is not None
    assert copied.action.command == "rota database accept"


def test_what_helps_is_to_look_why_before_the_act_is_repeated() -> None:
    (failing,) = items(failing=[lane(4)])
    assert failing.action is not None
    assert (failing.help, failing.action.command) == (failing.hint, "rota schedule trigger backup")
    assert failing.hint == "rota run ls --schedule backup --state failed"
    (missed,) = items(missed=[MissedTimes("backup", "down", 0, SECOND, 2)])
    assert missed.action is not None
    assert missed.help == missed.action.command


def test_words_and_what_helps() -> None:
    (slow,) = items(long_runs=[long_run(19)])
    assert slow.text == (
        "run r1 of job work is at work for 19m on w@1, 19.0 times as long as 95 % of its job's runs (1m)"
    )
    assert slow.action is not None
    assert slow.action.command == "rota run cancel r1"
    (gone,) = items(gone=[GoneWorker("w@1", NOW, held=["a", "b", "c", "d"], lost=["e"])])
    assert gone.text.endswith("without a shutdown; it holds 4 runs (a, b, c and 1 more) and lost 1 run (e)")
    (missed,) = items(missed=[MissedTimes("the backup", "down", 0, SECOND, 2)])
    assert missed.action is not None
    assert missed.action.command == (
        "rota schedule backfill 'the backup' --from 1970-01-01T00:00:00Z --to 1970-01-01T00:00:01Z"
    )
    assert missed.action.args == {"name": "the backup", "from": "1970-01-01T00:00:00Z", "to": "1970-01-01T00:00:01Z"}


def snooze(weight: int = 4, *, until: int = NOW + 1, subject: str = "backup") -> Snooze:
    return Snooze("schedule_failing", subject, until, weight, "ann", "known")


def test_a_snoozed_item_is_told_apart() -> None:
    judged = judge(items(failing=[lane(7)]), [snooze()], NOW)
    assert (judged.open, judged.counts) == ([], {})
    (found,) = judged.snoozed
    assert (found.snoozed_by, found.snooze_reason) == ("ann", "known")
    assert found.snoozed_until is not None
    assert micros_at(found.snoozed_until) == NOW + 1


@pytest.mark.parametrize(
    "held", [snooze(until=NOW), snooze(weight=3), snooze(subject="other")], ids=["over", "twice as bad", "of another"]
)
def test_it_comes_back(held: Snooze) -> None:
    judged = judge(items(failing=[lane(7)]), [held], NOW)
    assert [it.subject for it in judged.open] == ["backup"]
    assert judged.snoozed == []


def test_another_subject_that_joins_is_open() -> None:
    other = msgspec.structs.replace(lane(3), schedule="restore")
    judged = judge(items(failing=[lane(4), other]), [snooze()], NOW)
    assert ([it.subject for it in judged.open], [it.subject for it in judged.snoozed]) == (["restore"], ["backup"])


def test_the_gravest_kind_comes_first() -> None:
    everything: dict[str, Any] = {}
    for _, _, _, changes in RULES:
        everything |= changes
    places = [KINDS.index(it.kind) for it in judge(items(**everything), (), NOW).open]
    assert places == sorted(places)
    kinds = {kind for kind, _, _, _ in RULES} - {"epoch_new"}  # a copy tells more than its epoch
    assert len(set(places)) == len(kinds)


def test_a_problem_comes_before_warnings_of_its_kind() -> None:
    """Nobody sees more than the first items of a kind: they tell how grave it is."""
    both = [
        item("worker_gone", name, None, "gone", severity=severity)
        for name, severity in (("a", WARNING), ("b", PROBLEM), ("c", WARNING))
    ]
    assert [it.subject for it in judge(both, (), NOW).open] == ["b", "a", "c"]


def test_what_cannot_be_snoozed() -> None:
    with pytest.raises(Invalid, match="unknown kind"):
        checked_kind("run_slwo")
    for length in ("0s", "31d"):
        with pytest.raises(Invalid, match="length must be"):
            snooze_length(length)
