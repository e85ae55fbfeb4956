"""Formats of other services: what each gets of a failure, a success and a test."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from rota.core.alerts.message_formats import FORMATS, PINGS, formatted, started, told_of
from rota.core.alerts.notifications import MASK, mail_subject, notification_of, shown_to
from rota.errors import Invalid

URL = "https://example.com/hook/hunter2"
RUN = "0198c5af-0000-7000-8000-000000000001"
TRACEBACK = "Traceback:\n  x < y & ```z```\n" + "x" * 9_000
ERROR = {"type": "ValueError", "message": "<!channel> @everyone", "traceback": TRACEBACK}
FAILED: dict[str, Any] = {
    "id": "e", "type": "run.failed", "at": "2026-01-31T08:00:00Z", "job": "crawl", "schedule": "news", "held_back": 3,
    "run": {"id": RUN, "state": "failed", "attempt": 4, "error": ERROR},
}  # fmt: skip
GOOD = {**FAILED, "type": "run.succeeded", "run": {"id": RUN, "state": "succeeded", "error": None}}
MISSED = {"id": "e", "type": "schedule.missed", "at": "x", "job": "crawl", "schedule": "news", "details": {"count": 3}}


def sent(name: str, event: dict[str, Any], secret: str | None = None, url: str = URL) -> tuple[str, Any]:
    subject = mail_subject(event).removeprefix("[rota] ") if event["type"] != "run.started" else "begins"
    message = formatted(f"{name}:{url}", event, told_of(subject, event), secret)
    return message.url, json.loads(message.body) if name not in PINGS else message.body.decode()


def test_slack_gets_no_mention_from_an_error() -> None:
    url, body = sent("slack", FAILED)
    assert (url, list(body)) == (URL, ["text"])
    assert body["text"].startswith(":rotating_light: *crawl failed: ValueError: &lt;!channel&gt;")
    assert f"run: {RUN}" in body["text"]
    assert "not sent: 3" in body["text"]
    assert len(body["text"]) < 4_000
    assert sent("slack", GOOD)[1]["text"].startswith(":white_check_mark: *crawl succeeded*")


def test_teams_gets_a_card() -> None:
    (attachment,) = sent("teams", FAILED)[1]["attachments"]
    card = attachment["content"]
    assert (attachment["contentType"], card["type"]) == ("application/vnd.microsoft.card.adaptive", "AdaptiveCard")
    assert {"title": "job", "value": "crawl"} in card["body"][1]["facts"]
    assert card["body"][0]["color"] == "Attention"


def test_discord_tells_nobody_by_name_and_is_short() -> None:
    body = sent("discord", FAILED)[1]
    assert body["allowed_mentions"] == {"parse": []}
    (embed,) = body["embeds"]
    assert len(embed["title"]) <= 256
    assert len(embed["description"]) <= 4_096
    assert embed["description"].count("```") == 2


def test_pagerduty_opens_and_resolves_the_same_incident() -> None:
    opened, resolved = sent("pagerduty", FAILED, "key")[1], sent("pagerduty", GOOD, "key")[1]
    assert (opened["event_action"], resolved["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == resolved["dedup_key"] == "rota/news"
    assert (opened["routing_key"], opened["payload"]["severity"]) == ("key", "error")
    assert sent("pagerduty", MISSED, "key")[1]["payload"]["custom_details"]["count"] == "3"


@pytest.mark.parametrize(
    ("event", "healthchecks", "cronitor", "sentry"),
    [
        (started("crawl", RUN, 1), "/start", "run", "in_progress"),
        (GOOD, "", "complete", "ok"),
        (FAILED, "/fail", "fail", "error"),
        (MISSED, "/fail", "fail", "error"),
        ({"id": "e", "type": "test", "at": "x", "notification": "n"}, "/log", "complete", "ok"),
    ],
)
def test_pings(event: dict[str, Any], healthchecks: str, cronitor: str, sentry: str) -> None:
    url = urlsplit(sent("healthchecks", event, url="https://hc.example/uuid?create=1")[0])
    assert (url.path, parse_qs(url.query)["create"]) == (f"/uuid{healthchecks}", ["1"])
    assert parse_qs(urlsplit(sent("cronitor", event)[0]).query)["state"] == [cronitor]
    query = parse_qs(urlsplit(sent("sentry-crons", event)[0]).query)
    assert query["status"] == [sentry]
    if "run" in event:
        assert parse_qs(url.query)["rid"] == [RUN]
        assert query["check_in_id"] == [RUN.replace("-", "")]


@pytest.mark.parametrize("name", FORMATS)
def test_targets(name: str) -> None:
    options = {"to": f"{name}:{URL}", **({"secret": "env:KEY"} if name == "pagerduty" else {})}
    notification = notification_of(options)
    is_ping = name in PINGS
    assert notification.on == (("success", "failure") if is_ping else ("failure",))
    assert notification.at_most == (3_600 if is_ping else 60)
    assert shown_to(notification.to) == f"{name}:https://example.com/{MASK}"
    for wrong in (f"{name}:", f"{name}:mailto:a@example.com", f"{name}:ftp://example.com/hunter2"):
        with pytest.raises(Invalid, match="must be a URL") as caught:
            notification_of({**options, "to": wrong})
        assert "hunter2" not in str(caught.value)
    with pytest.raises(Invalid, match="secret"):
        notification_of({"to": options["to"]} if name == "pagerduty" else {**options, "secret": "s"})
