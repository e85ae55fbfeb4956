"""Notifications as values: parsing, which signals they match, the messages, and the hourly limit."""

from typing import Any

import pytest

from rota.core.alerts.notifications import (
    JOBS,
    MASK,
    event_of,
    mail_subject,
    mail_text,
    notification_of,
    page_of,
    shown_secret,
    shown_to,
)
from rota.core.alerts.signals import Signal, is_followed
from rota.core.calendar.triggers.job_end import FollowedEnd
from rota.core.jobs.retry import TryAgain, after_failure
from rota.errors import Invalid, UnknownOption

HOOK = "https://example.com/hook"
HOUR = 3_600_000_000


def signal(what: str = "failed", job: str = "crawl", schedule: str | None = None, kind: str = "run") -> Signal:
    return Signal(1, 0, what, kind, "an-id", job, schedule)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "must be a URL"),
        ({"to": "ftp://example.com"}, "must be a URL"),
        ({"to": "https://"}, "must be a URL"),
        ({"to": "https://example.com:99999/"}, "must be a URL"),
        ({"to": "mailto:nobody"}, "e-mail addresses"),
        ({"to": "mailto:a@example.com%0aBcc:b@example.com"}, "e-mail addresses"),
        ({"to": "mailto:a@example.com\nBcc: b@example.com"}, "must be a URL"),
        ({"to": HOOK, "on": ["fail"]}, "did you mean 'failure'"),
        ({"to": HOOK, "on": []}, "at least one"),
        ({"to": HOOK, "jobs": 5}, "must be a list"),
        ({"to": HOOK, "at_most": 0}, "from 1 up"),
        ({"to": HOOK, "secret": ""}, "must be text"),
        ({"to": HOOK, "secret": "env:not a name"}, "environment variable"),
        ({"to": "mailto:a@example.com", "secret": "s"}, "has no meaning"),
    ],
)
def test_what_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        notification_of(options)


def test_an_option_that_is_none() -> None:
    with pytest.raises(UnknownOption, match="did you mean 'secret'"):
        notification_of({"to": HOOK, "secrets": "x"})


def test_a_secret_in_a_url_is_not_repeated_in_the_error() -> None:
    with pytest.raises(Invalid) as caught:
        notification_of({"to": "ftp://me:hunter2@example.com/?token=hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("to", "shown"),
    [
        (HOOK, HOOK),
        ("https://me:hunter2@example.com:8443/a?token=hunter2#hunter2", f"https://{MASK}@example.com:8443/a?{MASK}"),
        ("mailto:a@example.com", "mailto:a@example.com"),
    ],
)
def test_what_is_shown_of_a_target(to: str, shown: str) -> None:
    assert shown_to(to) == shown


def test_what_is_shown_of_a_secret() -> None:
    assert [shown_secret(secret) for secret in (None, "hunter2", "env:HOOK")] == [None, MASK, "env:HOOK"]


@pytest.mark.parametrize(
    ("options", "told", "wanted"),
    [
        ({}, signal(), True),
        ({}, signal("timed_out"), True),
        ({}, signal("expired"), True),
        ({}, signal("succeeded"), False),
        ({}, signal("cancelled"), False),
        ({"on": "skip"}, signal("skipped"), True),
        ({"on": ["success", "missed"]}, signal("missed", kind="schedule"), True),
        ({"on": ["breached"]}, signal("breached", kind="job"), True),
        ({"jobs": ["crawl"]}, signal(), True),
        ({"jobs": ["other"]}, signal(), False),
        ({"schedules": ["news"]}, signal(schedule="news"), True),
        ({"schedules": ["news"]}, signal(), False),
        ({"jobs": ["other"], "schedules": ["news"]}, signal(schedule="news"), True),
        ({}, signal(job="rota.webhook"), False),
    ],
)
def test_whom_a_signal_concerns(options: dict[str, Any], told: Signal, wanted: bool) -> None:
    assert notification_of({"to": HOOK, **options}).matches(told) is wanted


def test_it_is_tried_for_a_day() -> None:
    retry, total = JOBS[0].retry, 0.0
    for attempt in range(1, retry.max_attempts):
        again = after_failure(retry, attempt, 0.0)
        assert isinstance(again, TryAgain)
        total += again.after.total_seconds()
    assert 24 * 3600 <= total <= 26 * 3600


def test_an_event_tells_no_payload_unless_asked() -> None:
    event = event_of(signal(), None, notification_of({"to": HOOK}), "some-id", held=3)
    assert event["type"] == "run.failed"
    assert event["held_back"] == 3


def test_mail_cannot_be_given_headers_by_an_error() -> None:
    error = {"type": "ValueError", "message": "no\r\nBcc: victim@example.com\x00\udc80"}
    event = {"id": "x", "type": "run.failed", "at": "now", "job": "crawl", "run": {"id": "r", "error": error}}
    subject = mail_subject(event)
    assert subject.startswith("[rota] crawl failed: ValueError: no Bcc: victim@example.com")
    assert subject.isprintable()
    assert "rota run get r" in mail_text(event)


@pytest.mark.parametrize(
    ("event", "page"),
    [
        ({"type": "run.failed", "job": "crawl", "run": {"id": "r"}}, "/runs/r"),
        ({"type": "schedule.missed", "job": "crawl", "schedule": "a/b"}, "/schedules/a%2Fb"),
        ({"type": "job.breached", "job": "crawl", "schedule": None}, "/jobs/crawl"),
        ({"type": "digest"}, "/error-groups"),
        ({"type": "test"}, "/"),
    ],
)
def test_each_message_has_a_page(event: dict[str, Any], page: str) -> None:
    assert page_of(event) == page


@pytest.mark.parametrize(
    ("what", "subject"),
    [("schedule.missed", "[rota] news: missed"), ("job.breached", "[rota] crawl: breached"), ("test", "[rota] a test")],
)
def test_subjects(what: str, subject: str) -> None:
    event = {"id": "x", "type": what, "at": "now", "job": "crawl", "schedule": "news", "details": {"count": 5}}
    assert mail_subject(event) == subject
    assert "count: 5" in mail_text(event)


@pytest.mark.parametrize(
    ("on", "state", "wanted"),
    [
        ("success", "succeeded", True), ("success", "failed", False), ("failure", "expired", True),
        ("failure", "cancelled", False), ("end", "cancelled", True), ("end", "skipped", False),
    ],
)  # fmt: skip
def test_which_ends_are_followed(on: str, state: str, wanted: bool) -> None:
    assert is_followed(FollowedEnd(on), state) is wanted
