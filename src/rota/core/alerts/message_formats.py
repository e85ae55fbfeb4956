"""Formats of other services: Slack, Teams, Discord, PagerDuty, and pings of dead man's switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from rota.values.json import Json

_MOST_FACTS = 12
_WELL = ("run.succeeded", "job.met", "schedule.met", "test")
_STARTED = "run.started"
_CARD = "application/vnd.microsoft.card.adaptive"
Event = Mapping[str, Json]


class Message(msgspec.Struct, frozen=True):
    """Request to a service; without a body it is only a ping."""

    url: str
    body: bytes = b""


class Told(msgspec.Struct, frozen=True):
    """Words for people: a sentence, facts by name, and the traceback."""

    subject: str
    facts: tuple[tuple[str, str], ...]
    details: str


Format = Callable[[str, Event, Told, str | None], Message]


def _slack(url: str, event: Event, told: Told, secret: str | None) -> Message:
    facts = "\n".join(f"{name}: {_escaped(text)}" for name, text in told.facts)
    details = f"\n```{_escaped(_cut(told.details, 1_500))}```" if told.details else ""
    sign = ":white_check_mark:" if is_well(event) else ":rotating_light:"
    return _json(url, {"text": f"{sign} *{_escaped(told.subject)}*\n{facts}{details}"})


def _escaped(text: str) -> str:
    """Escape what Slack would read as a link or a mention, such as `<!channel>` in the message of an error."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(url: str, event: Event, told: Told, secret: str | None) -> Message:
    facts = [{"title": name, "value": text} for name, text in told.facts]
    body: list[Json] = [
        {"type": "TextBlock", "text": told.subject, "weight": "Bolder", "wrap": True,
         "color": "Good" if is_well(event) else "Attention"},
        {"type": "FactSet", "facts": facts},
    ]  # fmt: skip
    if told.details:
        body.append({"type": "TextBlock", "text": _cut(told.details, 1_500), "wrap": True, "fontType": "Monospace"})
    card = {"type": "AdaptiveCard", "version": "1.4", "body": body}
    return _json(url, {"type": "message", "attachments": [{"contentType": _CARD, "content": card}]})


def _discord(url: str, event: Event, told: Told, secret: str | None) -> Message:
    fields: list[Json] = [{"name": name, "value": _cut(text, 1_000), "inline": True} for name, text in told.facts]
    details = f"```\n{_cut(told.details, 1_500).replace('```', '` ` `')}\n```" if told.details else ""
    colour = 0x2E_A0_43 if is_well(event) else 0xD7_3A_49
    embed = {"title": _cut(told.subject, 250), "description": details, "fields": fields, "color": colour}
    return _json(url, {"embeds": [embed], "allowed_mentions": {"parse": []}})  # @everyone in an error tells nobody


def _pagerduty(url: str, event: Event, told: Told, secret: str | None) -> Message:
    """Open an incident, or resolve that of the same subject."""
    details = event.get("details") or {}
    subject = [event.get("schedule") or event.get("job") or "rota", details.get("expectation") or details.get("what")]
    document: dict[str, Json] = {
        "routing_key": secret,
        "event_action": "resolve" if is_well(event) else "trigger",
        "dedup_key": _cut("/".join(["rota", *(str(part) for part in subject if part)]), 250),
        "payload": {
            "summary": _cut(told.subject, 1_000),
            "source": "rota",
            "severity": "error",
            "timestamp": event.get("at"),
            "component": event.get("job"),
            "custom_details": {**dict(told.facts), **({"error": _cut(told.details, 1_900)} if told.details else {})},
        },
    }
    return _json(url, document)


def _healthchecks(url: str, event: Event, told: Told, secret: str | None) -> Message:
    """Ping Healthchecks, where a body is shown beside the ping; a test is only logged."""
    end = "/log" if event["type"] == "test" else "/start" if event["type"] == _STARTED else ""
    parts = urlsplit(url)
    run = (event.get("run") or {}).get("id")
    query = urlencode([*parse_qsl(parts.query), *([("rid", run)] if run else [])])
    path = parts.path.rstrip("/") + (end or ("" if is_well(event) else "/fail"))
    body = b"" if event["type"] == _STARTED else f"{told.subject}\n{told.details}".encode()
    return Message(urlunsplit((parts.scheme, parts.netloc, path, query, "")), body)


def _cronitor(url: str, event: Event, told: Told, secret: str | None) -> Message:
    state = "run" if event["type"] == _STARTED else "complete" if is_well(event) else "fail"
    run = (event.get("run") or {}).get("id")
    more = [("series", run)] if run else []
    return Message(_with_query(url, [("state", state), *more, ("message", _cut(told.subject, 1_000))]))


def _sentry(url: str, event: Event, told: Told, secret: str | None) -> Message:
    status = "in_progress" if event["type"] == _STARTED else "ok" if is_well(event) else "error"
    run = (event.get("run") or {}).get("id")
    return Message(
        _with_query(url, [("status", status), *([("check_in_id", str(run).replace("-", ""))] if run else [])])
    )


_FORMATS: dict[str, Format] = {
    "slack": _slack,
    "teams": _teams,
    "discord": _discord,
    "pagerduty": _pagerduty,
    "healthchecks": _healthchecks,
    "cronitor": _cronitor,
    "sentry-crons": _sentry,
}
FORMATS = tuple(_FORMATS)
PINGS = ("healthchecks", "cronitor", "sentry-crons")
"""Dead man's switches: they tell people if nothing arrives."""
KEYED = ("pagerduty",)
"""Formats in which the secret is a key of the service."""


def format_of(to: str) -> tuple[str, str] | None:
    """Split `slack:https://…` into the format and the URL; None for other targets."""
    name, _, url = to.partition(":")
    return (name, url) if name in _FORMATS else None


def formatted(to: str, event: Event, told: Told, secret: str | None) -> Message:
    """Return the request that tells the service of `to` about an event."""
    found = format_of(to)
    assert found is not None
    return _FORMATS[found[0]](found[1], event, told, secret)


def started(job: str, run_id: str, attempt: int) -> dict[str, Json]:
    """Return the event of a handler that begins, which only dead man's switches are told of."""
    return {"type": _STARTED, "job": job, "run": {"id": run_id, "attempt": attempt}}


def is_well(event: Event) -> bool:
    """Return whether an event is good news."""
    return event["type"] in _WELL


def told_of(subject: str, event: Event) -> Told:
    """Return what people read about an event."""
    run: Mapping[str, Json] = event.get("run") or {}
    named = [("job", event.get("job")), ("schedule", event.get("schedule"))]
    named += [(name, run.get(name)) for name in ("id", "state", "attempt", "worker_id")]
    named += list((event.get("details") or {}).items())
    named += [("not sent", event.get("held_back"))]
    facts = tuple(
        (name if name != "id" else "run", _cut(str(value), 500)) for name, value in named if value is not None
    )[:_MOST_FACTS]
    if event.get("url"):  # whole, and however many facts there are: half a link leads nowhere
        facts = (*facts[: _MOST_FACTS - 1], ("page", str(event["url"])))
    error = run.get("error") or {}
    return Told(subject, facts, str(error.get("traceback") or "").rstrip())


def _with_query(url: str, more: list[tuple[str, str]]) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=urlencode([*parse_qsl(parts.query), *more])))


def _json(url: str, document: Json) -> Message:
    return Message(url, msgspec.json.encode(document))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[1 - most :]}"
