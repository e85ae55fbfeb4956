"""Items that need attention: what is the matter, since when, what helps, and which of them are snoozed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import Any

import msgspec

from rota.errors import Invalid, did_you_mean
from rota.values.durations import Duration, format_duration, in_micros, parse_duration
from rota.values.instants import instant

PROBLEM, WARNING = "problem", "warning"
SEVERITIES = (PROBLEM, WARNING)
LONGEST_SNOOZE = timedelta(days=30)
WORSE = 2
"""Times its weight when it was snoozed from which an item is back."""
SHOWN = 20

KINDS = (
    "database_copied", "epoch_new",
    "schedule_overdue", "schedule_failing", "schedule_missed", "schedule_skipped", "run_stuck", "run_lingering",
    "worker_gone", "queue_unserved", "job_unknown", "failure_rate", "run_slow", "queue_growing", "limit_starves",
    "signals_untold", "delivery_refused", "expectation_breached", "schedule_paused", "queue_paused", "job_paused",
    "versions_apart", "polling", "clock",
)  # fmt: skip
"""Every kind of item, the gravest first."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Act that helps: a verb of the client with its arguments, and the same as a command."""

    verb: str
    """Verb of the client, such as `schedules.resume`."""
    args: Mapping[str, Any]
    """Its arguments."""
    command: str
    """The same on the command line."""


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """Item that needs attention."""

    kind: str
    """What is the matter, for programs."""
    subject: str | None
    severity: str
    """`problem`, or `warning`: it slows things down, or somebody wanted it."""
    scope: str | None = None
    """The scope that it is about, `kind/id`, if it is about one."""
    since: datetime | None
    text: str
    """What is the matter, for people."""
    hint: str | None = None
    action: Action | None = None
    weight: int = 1
    """How much of it there is, such as failures in a row; a snoozed item is back when this has doubled."""
    snoozed_until: datetime | None = None
    """Until when it is left alone; null if it is not snoozed."""
    snoozed_by: str | None = None
    """Who snoozed it."""
    snooze_reason: str | None = None
    """Why it is snoozed."""

    @property
    def help(self) -> str | None:
        """Return what to do first: look why, if there is a way to, before the act is repeated."""
        return self.hint if self.hint or self.action is None else self.action.command


class Snooze(msgspec.Struct, frozen=True):
    """Snooze of one item; instants in microseconds. `weight` is what the item's was."""

    kind: str
    subject: str
    until: int
    weight: int
    by: str | None
    reason: str | None


def schedule_action(act: str, name: str, options: str = "", **args: Any) -> Action:
    command = f"rota schedule {act} {quote(name)} {options}".rstrip()
    return Action(verb=f"schedules.{act}", args={"name": name, **args}, command=command)


def item(kind: str, subject: str | None, since: int | None, text: str, **facts: Any) -> Attention:
    """Build an item; it is a problem unless `facts` say otherwise."""
    facts.setdefault("severity", PROBLEM)
    return Attention(kind=kind, subject=subject, since=None if since is None else instant(since), text=text, **facts)


class Judged(msgspec.Struct, frozen=True):
    """Items by whether they are snoozed."""

    open: Sequence[Attention]
    snoozed: Sequence[Attention]

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of open items by kind."""
        return dict(Counter(it.kind for it in self.open))


def judge(items: Iterable[Attention], snoozes: Iterable[Snooze], now: int) -> Judged:
    """Tell open items from snoozed ones. An item that got worse is open again.

    The gravest kind comes first, and problems of a kind before its warnings.
    """
    of = {(snooze.kind, snooze.subject): snooze for snooze in snoozes if snooze.until > now}
    ordered = sorted(items, key=lambda it: (KINDS.index(it.kind), it.severity != PROBLEM))
    open_items, snoozed = [], []
    for it in ordered:
        snooze = of.get((it.kind, it.subject or ""))
        if snooze is None or it.weight >= WORSE * max(1, snooze.weight):
            open_items.append(it)
        else:
            facts = {"snoozed_until": instant(snooze.until), "snoozed_by": snooze.by, "snooze_reason": snooze.reason}
            snoozed.append(msgspec.structs.replace(it, **facts))
    return Judged(open_items, snoozed)


def first_of_each(items: Sequence[Attention]) -> list[Attention]:
    """Return the first items of each kind, so that one kind does not hide the others."""
    seen: Counter[str] = Counter()
    shown = []
    for it in items:
        seen[it.kind] += 1
        if seen[it.kind] <= SHOWN:
            shown.append(it)
    return shown


def checked_kind(kind: str) -> str:
    if kind not in KINDS:
        raise Invalid(f"unknown kind of attention {kind!r:.80}", hint=did_you_mean(kind, KINDS))
    return kind


def snooze_length(length: Duration) -> int:
    """Validate how long an item is snoozed, and return it in microseconds."""
    span = parse_duration(length, "length")
    if not timedelta(0) < span <= LONGEST_SNOOZE:
        raise Invalid(f"length must be more than 0s and at most {format_duration(LONGEST_SNOOZE)}, not {length}")
    return in_micros(span)
