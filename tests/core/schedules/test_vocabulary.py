"""Words of other schedulers: each becomes rota's own, or is refused with a hint."""

from collections.abc import Callable
from typing import Any

import pytest

from rota.core.schedules.documents import parse
from rota.core.schedules.vocabulary import WITHOUT_COUNTERPART, translated, translated_changes, translated_job
from rota.errors import Invalid


@pytest.mark.parametrize(
    ("words", "own"),
    [
        ({"cron_expr": "0 3 * * *"}, {"cron": "0 3 * * *"}),
        ({"misfire_policy": "FIRE_NOW"}, {"catch_up": "all"}),
        ({"misfire_policy": "skip"}, {"catch_up": "none"}),
        ({"misfire_policy": "CATCH_UP_LIMITED", "catchup_limit": 3}, {"catch_up": {"mode": "all", "keep": 3}}),
        ({"overlap_action": "CANCEL_PREV"}, {"overlap": "cancel_previous"}),
        ({"failure_action": "RETRY"}, {"failure": "retry"}),
        ({"concurrency_policy": "QUEUE", "max_concurrency": 2}, {"when_full": "queue", "max_concurrency": 2}),
        ({"timeout_seconds": 8}, {"timeout": "8s"}),
        ({"max_retries": 0, "retry_backoff_seconds": 60}, {"max_attempts": 1, "backoff": {"base": "60s"}}),
        ({"cron_expr": None, "every": "5m"}, {"every": "5m"}),
        ({"schedule_time": "0 3 * * *"}, {"cron": "0 3 * * *"}),
        ({"dedupeKeys": ["scope_id", "target"]}, {"unique": ["target"]}),
        ({"concurrencyPolicy": "reject_same_scope"}, {"limit": {"max": 1, "by": "scope", "when_full": "reject"}}),
        (
            {"retryPolicy": {"maxAttempts": 2, "backoffSeconds": [30, 120]}, "timeoutSeconds": 600},
            {"max_attempts": 2, "backoff": ["30s", "120s"], "timeout": "600s"},
        ),
        (
            {"cancelPolicy": {"supported": True, "mode": "cooperative", "graceSeconds": 30}},
            {"cancellable": True, "cancel_grace": "30s"},
        ),
        ({"templateType": "demo", "payloadTemplate": {"a": 1}}, {"job": "demo", "payload": {"a": 1}}),
    ],
)
def test_words_are_translated(words: dict[str, Any], own: dict[str, Any]) -> None:
    assert translated(words) == own


@pytest.mark.parametrize("word", WITHOUT_COUNTERPART)
def test_a_word_without_a_counterpart_has_a_hint(word: str) -> None:
    for act in (translated, translated_job, translated_changes):
        with pytest.raises(Invalid, match=word) as refused:
            act({word: 1})
        assert refused.value.hint == WITHOUT_COUNTERPART[word]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"cron_expr": "* * * * *", "cron": "* * * * *"}, "exclude each other"),
        ({"misfire_policy": "SKIPP"}, "misfire_policy cannot be 'SKIPP'"),
        ({"catchup_limit": 3}, "needs misfire_policy"),
        ({"misfire_policy": "SKIP", "catchup_limit": 3}, "needs misfire_policy"),
        ({"max_retries": -1}, "max_retries must be a whole number from 0 up"),
        ({"retry_backoff_seconds": True}, "retry_backoff_seconds must be a whole number from 1 up"),
        ({"timeout_seconds": "5"}, "timeout_seconds must be"),
        ({"retryPolicy": {"max": 2}}, "retryPolicy has no 'max'"),
        ({"retryPolicy": 2}, "retryPolicy must be an object"),
        ({"retryPolicy": {"maxAttempts": 2}, "max_attempts": 2}, "exclude each other"),
        ({"cancelPolicy": {"mode": "brutal"}}, "mode of cancelPolicy cannot be 'brutal'"),
        ({"dedupeKeys": "target"}, "dedupeKeys must be a list"),
        ({"concurrencyPolicy": "same"}, "concurrencyPolicy cannot be 'same'"),
    ],
)
def test_wrong_words_are_refused(words: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        translated(words)


def test_documents_of_schedules_may_have_them() -> None:
    parsed = parse({"name": "n", "job": "j", "cron_expr": "0 3 * * *", "overlap_action": "ALLOW", "max_retries": 3})
    assert parsed.options == {"overlap": "allow", "max_attempts": 4}


def test_a_job_and_its_schedule_are_told_apart() -> None:
    words = {"source_name": "ping", "url": "u", "max_retries": 3, "interval_minutes": 6, "interval_type": "hours"}
    schedule = {"interval_minutes": 6, "interval_type": "hours", "payload": {"a": 1}, "enabled": True}
    own = {"name": "ping", "url": "u", "max_attempts": 4, "schedule": schedule}
    assert translated_job({**words, "schedule_enabled": True, "payload": {"a": 1}}) == own
    assert translated_job({"url": "u", "schedule_enabled": False}) == {"url": "u", "run": {}}
    old = {"url": "u", "schedule_time": "0 3 * * *"}
    assert translated_job(old) == {"url": "u", "schedule": {"cron": "0 3 * * *"}}
    both = translated_job({**old, "interval_minutes": 30})
    assert both == {"url": "u", "schedule": {"interval_minutes": 30}}, "the interval stands over the cron field"
    assert translated_job({"url": "u", "source_id": "news", "metadata": {"a": 1}}) == {
        "url": "u", "metadata": {"source_id": "news", "a": 1},
    }  # fmt: skip
    wrongs: list[dict[str, Any]] = [
        {"schedule_enabled": True},
        {"payload": {}},
        {"schedule": {}, "cron_expr": "* * * * *"},
    ]
    for wrong in wrongs:
        with pytest.raises(Invalid):
            translated_job({"url": "u", **wrong})


def test_a_template_and_its_schedule_as_they_are_stored() -> None:
    template = {
        "_id": "…", "type": "demo", "version": 1, "name": "示範", "createAt": 0, "updateAt": 0, "timeoutSeconds": 600,
        "steps": [{"id": "a", "workerType": "go", "timeoutSeconds": 60, "cancelable": True}],
    }  # fmt: skip
    assert translated_job(template) == {
        "name": "demo", "kind": "external", "timeout": "600s", "metadata": {"name": "示範"},
        "steps": [{"id": "a", "timeout": "60s", "cancelable": True}],
    }  # fmt: skip
    schedule = {
        "_id": "…", "templateType": "demo", "scope": "user", "scopeId": "u1", "enabled": True, "cron": "0 9 * * *",
        "timezone": "Asia/Taipei", "payloadTemplate": {}, "lastRunAt": None, "nextRunAt": 0, "createAt": 0,
    }  # fmt: skip
    assert translated(schedule) == {
        "name": "demo-u1", "job": "demo", "scopes": [["user", "u1"]], "enabled": True, "cron": "0 9 * * *",
        "timezone": "Asia/Taipei", "payload": {},
    }  # fmt: skip


@pytest.mark.parametrize("act", [translated_job, translated_changes])
def test_steps_have_the_words_of_templates_without_a_template_too(act: Callable[[Any], Any]) -> None:
    steps = [{"id": "a", "workerType": "go", "timeoutSeconds": 60}, "bogus"]
    assert act({"name": "demo", "steps": steps})["steps"] == [{"id": "a", "timeout": "60s"}, "bogus"]


def test_changes_of_a_job_and_of_its_schedule_are_told_apart() -> None:
    assert translated_changes({"max_retries": 5, "retry_backoff_seconds": 120}).keys() == {"max_attempts", "backoff"}
    words = {"interval_minutes": 5, "interval_type": "hours", "schedule_time": "0 3 * * *", "schedule_enabled": False}
    assert translated_changes({**words, "priority": 1, "source_name": "ping"}) == {
        "priority": 1,
        "source_name": "ping",
        "schedule": {"interval_minutes": 5, "interval_type": "hours", "enabled": False},
    }
    assert translated_changes({"schedule_enabled": True}) == {"schedule": {"enabled": True}}
    assert translated_changes({"payload": {"a": 1}, "schedule": {"cron": "0 3 * * *"}}) == {
        "schedule": {"cron": "0 3 * * *", "payload": {"a": 1}}
    }
    with pytest.raises(Invalid, match="exclude each other"):
        translated_changes({"schedule": {}, "cron_expr": "* * * * *"})
