"""Notifications as values: their settings, which signals they match, and the message that is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, TypedDict
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import msgspec
from msgspec import Meta

from rota.core.alerts.budgets import digest_lines
from rota.core.alerts.message_formats import KEYED, PINGS, format_of
from rota.core.alerts.signals import EMAIL_JOB, WEBHOOK_JOB, WORDS, Signal
from rota.core.alerts.webhook_signature import checked_secret
from rota.core.jobs.job import JobDefinition, Retention
from rota.core.jobs.retry import Exponential, RetryPolicy
from rota.core.runs.run import Run
from rota.errors import Invalid, RotaError, UnknownOption, did_you_mean
from rota.values.instants import instant
from rota.values.json import Json
from rota.values.names import checked_name

ON = tuple(dict.fromkeys(WORDS.values()))
QUEUE = "rota"
ENV = "env:"
JOB = "job:"
CHANNEL, PROVIDER = "channel:", "provider:"
MASK = "***"
AT_MOST = 60
PINGS_AT_MOST = 3_600
"""A dead man's switch must hear of every run."""
_LONGEST = 2_000
_ADDRESS = re.compile(r"[^@\s<>,;:\"()]+@[^@\s<>,;:\"()]+")
_PLUGIN = re.compile(r"(?:channel|provider):[A-Za-z0-9_.-]+/[^\s].*")
_ENV_NAME = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
MOST_NAMED = 1_000
_MOST_AN_HOUR = 1_000_000
# 30s, doubling up to 4h: the last of 15 attempts is a day after the first.
_RETRY = RetryPolicy(15, Exponential(base=timedelta(seconds=30), cap=timedelta(hours=4)))

WEBHOOK = JobDefinition(
    name=WEBHOOK_JOB,
    queue=QUEUE,
    retry=_RETRY,
    timeout=timedelta(seconds=60),
    retention=Retention(500, timedelta(days=7)),
    schedulable=False,
    description="Sends a notification to a URL, signed.",
)
EMAIL = msgspec.structs.replace(WEBHOOK, name=EMAIL_JOB, description="Sends a notification by e-mail.")
JOBS = (WEBHOOK, EMAIL)


class Notification(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Notification `on` some signals of some jobs or schedules (of all, if none is named), `to` a URL, a `mailto:`, or
    a job of the application, `job:NAME`.

    `secret` signs webhooks; `env:NAME` is looked up by the sending worker. At most `at_most` are sent per hour, job and
    kind of event (see `budgets`).
    """

    on: tuple[str, ...]
    to: str
    jobs: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    secret: str | None = None
    include_payload: bool = False
    at_most: int = AT_MOST

    @property
    def is_mail(self) -> bool:
        return self.to.startswith("mailto:")

    @property
    def hook(self) -> str | None:
        """Job of the application that is told, if it is one."""
        return self.to.removeprefix(JOB) if self.to.startswith(JOB) else None

    @property
    def addresses(self) -> list[str]:
        return [unquote(part).strip() for part in self.to.removeprefix("mailto:").split(",")]

    @property
    def job(self) -> JobDefinition:
        """Job whose runs send it."""
        return EMAIL if self.is_mail else WEBHOOK

    def matches(self, signal: Signal) -> bool:
        if signal.is_own or signal.word not in self.on:
            return False
        if not self.jobs and not self.schedules:
            return True
        return signal.job in self.jobs or signal.schedule in self.schedules


OPTIONS = Notification.__struct_fields__


Names = Annotated[Sequence[str], Meta(max_length=MOST_NAMED)]


class NotificationOptions(TypedDict, total=False):
    """Options of a notification as callers give them; None is the default."""

    on: Annotated[Names | str | None, Meta(description=f"Signals to send, of {', '.join(ON)}; by default failure")]
    jobs: Annotated[Names | None, Meta(description="Only of these jobs; without jobs and schedules, of everything")]
    schedules: Annotated[Names | None, Meta(description="Only of these schedules")]
    secret: Annotated[str | None, Meta(description="Signs webhooks; `env:NAME` is looked up by the sending worker")]
    include_payload: Annotated[bool | None, Meta(description="Whether to send payloads, too")]
    at_most: Annotated[
        int | None, Meta(description=f"Deliveries per hour, job and kind of event, by default {AT_MOST}")
    ]


class NewNotification(NotificationOptions):
    """Options of a new notification."""

    to: Annotated[str, Meta(description="A URL, a `mailto:` address, or a service and its URL: `slack:https://…`")]


class NotificationChanges(NotificationOptions, total=False):
    """Options of a notification that can be changed."""

    to: Annotated[str, Meta(description="A URL, a `mailto:` address, or a service and its URL: `slack:https://…`")]
    enabled: Annotated[bool | None, Meta(description="Whether it is sent")]


class NotificationView(msgspec.Struct, frozen=True, kw_only=True):
    """Notification without its secrets, for people."""

    name: str
    on: tuple[str, ...]
    """Events that are sent."""
    to: str
    """A URL or a `mailto:` address."""
    jobs: tuple[str, ...]
    """Only events of these jobs."""
    schedules: tuple[str, ...]
    """Only events of these schedules."""
    secret: str | None
    """`***` if messages are signed."""
    include_payload: bool
    at_most: int
    """Most messages in an hour for each job and kind of event."""
    owner: str
    enabled: bool
    """Whether it is sent."""
    created_at: datetime
    updated_at: datetime


def notification_of(options: Mapping[str, Any]) -> Notification:
    """Parse and validate a notification; None is an option's default."""
    for option in options:
        if option not in OPTIONS:
            raise UnknownOption(str(option), OPTIONS, where="a notification")
    options = {option: value for option, value in options.items() if value is not None}
    to = _to(options.get("to"))
    found = format_of(to)
    is_ping = found is not None and found[0] in PINGS
    secret, at_most = options.get("secret"), options.get("at_most", PINGS_AT_MOST if is_ping else AT_MOST)
    if not isinstance(at_most, int) or isinstance(at_most, bool) or not 1 <= at_most <= _MOST_AN_HOUR:
        raise Invalid(f"at_most must be a whole number from 1 up to {_MOST_AN_HOUR}, not {at_most!r:.40}")
    notification = Notification(
        on=_on(options.get("on", ("success", "failure") if is_ping else ("failure",))),
        to=to,
        jobs=_names(options.get("jobs") or (), "jobs"),
        schedules=_names(options.get("schedules") or (), "schedules"),
        secret=None if secret is None else _secret(secret),
        include_payload=bool(options.get("include_payload", False)),
        at_most=at_most,
    )
    if notification.secret and (notification.is_mail or notification.hook):
        raise Invalid("secret has no meaning for an e-mail or a job", hint="it signs webhooks")
    if found is not None and (found[0] in KEYED) != (notification.secret is not None):
        if found[0] in KEYED:
            raise Invalid(f"{found[0]} needs its key as the secret", hint='secret="env:PAGERDUTY_KEY"')
        raise Invalid(f"secret has no meaning for {found[0]}", hint="its URL is the secret")
    return notification


def checked_notification(name: str, options: Mapping[str, Any]) -> Notification:
    """Parse a notification; errors name it."""
    try:
        return notification_of(options)
    except RotaError as error:
        raise error.within(f"notification {name!r}") from None


def changed_notification(name: str, old: Notification, changes: Mapping[str, Any]) -> Notification:
    """Apply `changes`; None resets an option, and what is not given stays."""
    return checked_notification(name, {**msgspec.structs.asdict(old), **changes})


def _on(value: object) -> tuple[str, ...]:
    words = _listed(value, "on")
    if not words:
        raise Invalid("on must name at least one of " + ", ".join(ON))
    for word in words:
        if word not in ON:
            raise Invalid(f"on cannot be {word!r:.40}", hint=did_you_mean(str(word), ON) or "known: " + ", ".join(ON))
    return tuple(dict.fromkeys(words))


def _names(value: object, what: str) -> tuple[str, ...]:
    names = _listed(value, what)
    if len(names) > MOST_NAMED:
        raise Invalid(f"{what} are at most {MOST_NAMED}, not {len(names)}", hint="leave it out for all")
    return tuple(dict.fromkeys(checked_name(name, f"each of {what}") for name in names))


def _listed(value: object, what: str) -> tuple[Any, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        raise Invalid(f"{what} must be a list, not {value!r:.80}")
    return tuple(value)


def _to(value: object) -> str:
    """Validate the target. Errors do not quote it: it may contain a secret."""
    hint = "https://example.com/hook, or mailto:ops@example.com"
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable() or " " in value:
        raise Invalid("`to` must be a URL or a mailto:", hint=hint)
    if value.startswith(CHANNEL):
        if not _PLUGIN.fullmatch(value):
            raise Invalid("`to` must name a channel and a target", hint="channel:slack/ops")
        return value
    if value.startswith(JOB):
        return JOB + checked_name(value.removeprefix(JOB), "the job of `to`")
    if found := format_of(value):
        _require_url(found[1], hint=f"{found[0]}:https://…")
        return value
    if value.startswith("mailto:"):
        addresses = [unquote(part).strip() for part in value.removeprefix("mailto:").split(",")]
        if not all(_ADDRESS.fullmatch(address) and address.isprintable() for address in addresses):
            raise Invalid("`to` must name e-mail addresses behind mailto:", hint="mailto:a@example.com,b@example.com")
        return value
    _require_url(value, hint=hint)
    return value


def _require_url(value: str, hint: str) -> None:
    try:
        parts = urlsplit(value)
        well = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        well = False
    if not well:
        raise Invalid("`to` must be a URL of http or https, or a mailto:", hint=hint)


def _secret(value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > _LONGEST or not value.isprintable():
        raise Invalid(
            "secret must be text",
            hint='the text itself, or "env:NAME" for an environment variable of the sending worker',
        )
    if value.startswith(ENV) and not _ENV_NAME.fullmatch(value):
        raise Invalid("secret must name an environment variable", hint='as in "env:HOOK_SECRET"')
    if value.startswith(PROVIDER) and not _PLUGIN.fullmatch(value):
        raise Invalid("secret must name a provider and a reference", hint="provider:vault/hooks/ops")
    if not value.startswith((ENV, PROVIDER)):
        checked_secret(value)
    return value


def shown_secret(secret: str | None) -> str | None:
    return secret if secret is None or secret.startswith((ENV, PROVIDER)) else MASK


def shown_to(to: str) -> str:
    """Mask the password and the query of a URL, which are often secrets, and all of a service's but its host."""
    if to.startswith(("mailto:", JOB, CHANNEL)):
        return to
    if found := format_of(to):  # the path is the secret there
        return f"{found[0]}:{urlsplit(found[1]).scheme}://{urlsplit(found[1]).hostname}/{MASK}"
    parts = urlsplit(to)
    place = parts.netloc.rpartition("@")
    netloc = f"{MASK}@{place[2]}" if place[1] else parts.netloc
    return urlunsplit((parts.scheme, netloc, parts.path, MASK if parts.query else "", ""))


def event_of(signal: Signal, run: Run | None, notification: Notification, id: str, held: int = 0) -> dict[str, Json]:
    """Build the message for a receiver; `held` similar ones were suppressed before it."""
    event: dict[str, Json] = {
        "id": id,
        "type": f"{signal.kind}.{signal.type}",
        "at": msgspec.to_builtins(instant(signal.at)),
        "job": signal.job,
        "schedule": signal.schedule,
    }
    if signal.details:
        event["details"] = signal.details
    if held:
        event["held_back"] = held
    if run is not None:
        fields: dict[str, Json] = msgspec.to_builtins(run)
        if not notification.include_payload:
            del fields["payload"]
        event["run"] = fields
    return event


def trial_of(name: str, id: str, at: int) -> dict[str, Json]:
    return {"id": id, "type": "test", "at": msgspec.to_builtins(instant(at)), "notification": name}


_SUBJECTS = {
    "run.succeeded": "{job} succeeded", "run.failed": "{job} failed", "run.timed_out": "{job} timed out",
    "run.expired": "{job} expired", "run.cancelled": "{job} was cancelled", "run.skipped": "{job} was skipped",
    "test": "a test", "digest": "messages that were held back",
}  # fmt: skip


def page_of(event: Mapping[str, Json]) -> str:
    """Return the path of the dashboard's page that a message is about."""
    kind = str(event["type"]).partition(".")[0]
    run = event.get("run") or {}
    if run.get("id"):
        return f"/runs/{run['id']}"
    if kind == "digest":
        return "/error-groups"
    for subject, folder in (("schedule", "schedules"), ("job", "jobs")):
        if event.get(subject):
            return f"/{folder}/{quote(str(event[subject]), safe='')}"
    return "/"


def mail_subject(event: Mapping[str, Json]) -> str:
    """Build the subject line of an e-mail."""
    event_type = str(event["type"])
    subject = event.get("schedule") if event_type.startswith("schedule.") else event.get("job")
    pattern = _SUBJECTS.get(event_type, f"{{job}}: {event_type.partition('.')[2] or event_type}")
    sentence = pattern.format(job=subject or "rota")
    error = (event.get("run") or {}).get("error")
    why = f": {error['type']}: {error['message']}" if error else ""
    printable = "".join(letter if letter.isprintable() else " " for letter in f"[rota] {sentence}{why}")
    return " ".join(printable.split())[:200]


def mail_text(event: Mapping[str, Json]) -> str:
    lines = [mail_subject(event).removeprefix("[rota] "), ""]
    lines += _facts(event, ("type", "at", "job", "schedule"))
    run = event.get("run") or {}
    lines += _facts(run, ("id", "state", "reason", "attempt", "max_attempts", "started_at", "finished_at", "worker_id"))
    details = event.get("details") or {}
    lines += _facts({name: value for name, value in details.items() if name != "groups"})
    if event.get("held_back"):
        lines += ["", f"{event['held_back']} more like this were not sent: there were too many."]
    lines += digest_lines(details)
    error = run.get("error")
    if error:
        lines += ["", (error.get("traceback") or f"{error['type']}: {error['message']}").rstrip()]
    if event.get("url"):
        lines += ["", str(event["url"])]
    if run.get("id"):
        lines += ["", f"more: rota run get {run['id']}"]
    return "\n".join(lines) + "\n"


def _facts(fields: Mapping[str, Json], names: Iterable[str] | None = None) -> list[str]:
    named = fields if names is None else [name for name in names if fields.get(name) is not None]
    return [f"{name}: {fields[name]}" for name in named]
