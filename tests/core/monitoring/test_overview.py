"""Attention items derived from facts."""

import msgspec
import pytest

from rota.core.ledger.explain_run import LiveWorker
from rota.core.monitoring.attention import Action, first_of_each, judge
from rota.core.monitoring.attention_facts import Backlog, Facts, OpenBreach
from rota.core.monitoring.attention_rules import LATE, backlogs, items_of
from rota.core.monitoring.counters import Counted, last_day, merged
from rota.core.monitoring.doctor import OperatorPause, OverdueSchedule, StuckRun, Symptoms
from rota.core.workers.worker import WorkerState
from rota.values.instants import instant

NOW = 1_750_000_000_000_000
LONG_AGO = NOW - LATE - 1
MAIL = Backlog("mail", "send", 3, LONG_AGO, 3)
SERVING = LiveWorker("a@1", ("mail",), ("send",))
QUIET = Facts(symptoms=Symptoms(now=NOW, queues={"mail": 3}, jobs={"send": 3}, workers=[SERVING]), backlog=[MAIL])


def kinds(facts: Facts) -> list[tuple[str, str | None]]:
    return [(one.kind, one.subject) for one in judge(items_of(facts), (), NOW).open]


def with_symptoms(**changes: object) -> Facts:
    return msgspec.structs.replace(QUIET, symptoms=msgspec.structs.replace(QUIET.symptoms, **changes))


def test_nothing_is_wrong_with_a_queue_that_is_served() -> None:
    assert kinds(QUIET) == []


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (with_symptoms(overdue=[OverdueSchedule("s", LONG_AGO, None, None)]), ("schedule_overdue", "s")),
        (with_symptoms(stuck=[StuckRun("r", "w@1", LONG_AGO)]), ("run_stuck", "r")),
        (with_symptoms(signals=2), ("signals_untold", None)),
        (msgspec.structs.replace(QUIET, lingering=[StuckRun("r", "w@1", LONG_AGO)]), ("run_lingering", "r")),
        (
            msgspec.structs.replace(QUIET, breaches=[OpenBreach("job", "send", "success_every", LONG_AGO, "no run")]),
            ("expectation_breached", "job/send"),
        ),
        (
            msgspec.structs.replace(QUIET, held=[OperatorPause("queue", "mail", NOW, "ada", "relay")]),
            ("queue_paused", "mail"),
        ),
        (msgspec.structs.replace(QUIET, held=[OperatorPause("job", "send", NOW, None, None)]), ("job_paused", "send")),
        (msgspec.structs.replace(QUIET, polls=True), ("polling", None)),
        (msgspec.structs.replace(QUIET, offset=2_000_000), ("clock", None)),
    ],
)
def test_each_kind(facts: Facts, expected: tuple[str, str | None]) -> None:
    assert kinds(facts) == [expected]


@pytest.mark.parametrize(
    ("schedule", "helps"),
    [
        (OverdueSchedule("s", LONG_AGO, None, None), "check that one is alive"),
        (OverdueSchedule("s", LONG_AGO, "no such zone", "shops"), "read its log"),
        (OverdueSchedule("s", LONG_AGO, None, "shops"), "register the provider"),
    ],
)
def test_only_who_wants_a_provider_is_told_of_it(schedule: OverdueSchedule, helps: str) -> None:
    other = OverdueSchedule("other", LONG_AGO, None, "shops")
    told = next(one for one in items_of(with_symptoms(overdue=[schedule, other])) if one.subject == "s")
    assert helps in str(told.hint)
    assert ("provider" in str(told.hint)) == (helps == "register the provider")


def test_a_queue_without_a_worker_and_a_job_that_nobody_knows() -> None:
    other = LiveWorker("a@1", ("mail",), ("sort",))
    assert kinds(with_symptoms(workers=[other])) == [("job_unknown", "send")]
    drained = LiveWorker("a@1", ("mail",), ("send",), WorkerState.DRAINING)
    assert kinds(with_symptoms(workers=[drained])) == [("queue_unserved", "mail")]


def test_without_a_worker_all_jobs_are_one_item() -> None:
    jobs = [Backlog("mail", f"job{no}", no, LONG_AGO - no, no) for no in range(1, 6)]
    facts = with_symptoms(workers=[], jobs={row.job: row.runs for row in jobs}, queues={"mail": 15})
    facts = msgspec.structs.replace(facts, backlog=jobs)
    queue, unknown = judge(items_of(facts), (), NOW).open
    assert (queue.kind, unknown.kind, unknown.subject, unknown.weight) == ("queue_unserved", "job_unknown", None, 15)
    assert unknown.text == "no live worker knows any job: 15 runs wait (job1, job2, job3 and 2 more)"
    assert unknown.since == instant(LONG_AGO - 5)
    server = LiveWorker("server@1", (), ())
    assert kinds(
        msgspec.structs.replace(facts, symptoms=msgspec.structs.replace(facts.symptoms, workers=[server]))
    ) == [
        ("queue_unserved", "mail"),
        ("job_unknown", None),
    ]


def test_a_worker_may_be_about_to_start() -> None:
    fresh = msgspec.structs.replace(MAIL, oldest=NOW - LATE)
    assert kinds(msgspec.structs.replace(with_symptoms(workers=[]), backlog=[fresh])) == []


def test_what_is_paused_is_told_as_such_only() -> None:
    held = [OperatorPause("queue", "mail", NOW, None, None), OperatorPause("job", "send", NOW, None, None)]
    facts = msgspec.structs.replace(with_symptoms(workers=[]), held=held)
    assert kinds(facts) == [("queue_paused", "mail"), ("job_paused", "send")]


def test_a_pause_without_a_backlog_is_nothing_to_look_at() -> None:
    assert kinds(msgspec.structs.replace(QUIET, held=[OperatorPause("queue", "slow", NOW, None, None)])) == []


def test_a_kind_is_not_shown_to_its_end() -> None:
    many = with_symptoms(overdue=[OverdueSchedule(f"s{no}", LONG_AGO, None, None) for no in range(30)], signals=1)
    judged = judge(items_of(many), (), NOW)
    told = first_of_each(judged.open)
    assert (len(told), judged.counts) == (21, {"schedule_overdue": 30, "signals_untold": 1})
    assert told[-1].kind == "signals_untold"


def test_words() -> None:
    held = OperatorPause("queue", "mail", NOW, "ada", "the relay is down")
    (told,) = items_of(msgspec.structs.replace(QUIET, held=[held]))
    assert told.text == "queue mail is paused by ada (the relay is down), and 3 runs wait"
    assert told.hint == "rota queue resume mail"
    assert told.action == Action(verb="resume_queue", args={"name": "mail"}, command="rota queue resume mail")


def test_backlogs_are_added_up() -> None:
    found = [MAIL, Backlog("mail", "sort", 2, NOW, 0), Backlog("slow", "send", 1, NOW, 0)]
    assert backlogs(found, "queue") == {"mail": (5, LONG_AGO), "slow": (1, NOW)}
    assert backlogs(found, "job") == {"send": (4, LONG_AGO), "sort": (2, NOW)}


def test_counts_are_merged_in_whatever_order() -> None:
    parts = [
        Counted(runs={"succeeded": 2}, durations={10: 1}, lag={5: 1}),
        Counted(runs={"succeeded": 1, "failed": 1}, durations={10: 2, 20: 1}),
        Counted(levels={"mail": (1, 2, 0)}),
        Counted(levels={"mail": (3, 1, 0), "slow": (0, 1, 0)}),
    ]
    whole = Counted(
        runs={"succeeded": 3, "failed": 1},
        durations={10: 3, 20: 1},
        lag={5: 1},
        levels={"mail": (3, 1, 0), "slow": (0, 1, 0)},
    )
    assert merged(parts) == merged(reversed(parts)) == whole
    assert merged([merged(parts[:2]), merged(parts[2:])]) == whole
    assert msgspec.json.decode(msgspec.json.encode(whole), type=Counted) == whole


def test_the_last_day() -> None:
    day = last_day([Counted(runs={"succeeded": 3, "skipped": 5}), Counted(runs={"failed": 1})])
    assert (day.runs, day.success_rate) == ({"failed": 1, "skipped": 5, "succeeded": 3}, 0.75)
    assert last_day([]).success_rate is None
