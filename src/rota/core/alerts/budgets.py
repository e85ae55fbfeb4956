"""Budgets: how many messages of a notification are sent in an hour, and the digest of those that are held back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from rota.core.alerts.signals import Signal
from rota.core.runs.run import RunError
from rota.values.instants import instant
from rota.values.json import Json

HOUR = 3_600_000_000
OF_AN_ERROR = 10
"""One error takes at most this part of a budget, so that others are heard beside it."""
NEVER_HELD = ("breached", "met", "late")
"""Expectations are announced once when they are breached and once when they are met: no budget holds them back."""
MOST_GROUPS = 100
DIGEST = "digest"


class Budget(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Messages that are counted together: events of one kind of a job, or those of them with the same error."""

    job: str
    word: str = ""
    error: str = ""
    fingerprint: str = ""

    @property
    def key(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, key: str) -> Budget:
        """Read a key; those of older programs are names of jobs."""
        try:
            return msgspec.json.decode(key, type=Budget)
        except msgspec.DecodeError:
            return Budget(key)


class Window(msgspec.Struct, frozen=True):
    """Hour of a budget: how many messages were sent since then (`told`) and suppressed (`held`)."""

    since: int
    told: int = 0
    held: int = 0


class Admission(NamedTuple):
    """Answer to a message: sent or not, and how many that were suppressed before it reports."""

    is_sent: bool
    held: int = 0


class Held(msgspec.Struct, frozen=True):
    """Messages of a budget that were suppressed in its hour."""

    budget: Budget
    since: int
    count: int


def budgets_of(signal: Signal, error: RunError | None) -> list[Budget]:
    """Return the budgets that a message spends, the narrowest first; none if it is never held back."""
    if signal.word in NEVER_HELD:
        return []
    whole = Budget(signal.job or "", signal.word)
    if error is None:
        return [whole]
    return [Budget(whole.job, whole.word, error.type, error.fingerprint or ""), whole]


def admit(
    windows: dict[str, Window], budgets: Sequence[Budget], now: int, at_most: int, *, per_error: bool = True
) -> Admission:
    """Spend the budgets of one message in `windows`, by their keys, or count it as held back in the narrowest."""
    if not budgets:
        return Admission(is_sent=True)
    current = {budget.key: _current(windows.get(budget.key), now) for budget in budgets}
    before = sum(windows[key].held for key in current if key in windows and current[key].since != windows[key].since)
    allowed = {it.key: max(1, at_most // OF_AN_ERROR) if it.error and per_error else at_most for it in budgets}
    if all(window.told < allowed[key] for key, window in current.items()):
        windows.update({key: Window(it.since, it.told + 1, it.held) for key, it in current.items()})
        return Admission(is_sent=True, held=before)
    narrowest = budgets[0].key
    spent = current[narrowest]
    windows[narrowest] = Window(spent.since, spent.told, spent.held + 1)
    return Admission(is_sent=False)


def _current(window: Window | None, now: int) -> Window:
    return Window(now) if window is None or now - window.since >= HOUR else window


def digest_of(held: Iterable[Held], id: str, now: int) -> dict[str, Json]:
    """Build the message about all that were suppressed, the most frequent first."""
    ordered = sorted(held, key=lambda it: (-it.count, it.budget))
    groups: list[Json] = [
        {"job": it.budget.job, "on": it.budget.word or None, "error": it.budget.error or None, "count": it.count}
        for it in ordered[:MOST_GROUPS]
    ]
    details: dict[str, Json] = {
        "held_back": sum(it.count for it in ordered),
        "from": _written(min(it.since for it in ordered)),
        "groups": groups,
    }
    return {"id": id, "type": DIGEST, "at": _written(now), "details": details}


def digest_lines(details: Mapping[str, Json]) -> list[str]:
    """Return a line of text for each group of a digest."""
    return [_line(group) for group in details.get("groups", ())]


def _line(group: Mapping[str, Json]) -> str:
    error = f" ({group['error']})" if group["error"] else ""
    return f"{group['count']} × {group['job']}: {group['on'] or 'event'}{error}"


def _written(micros: int) -> str:
    return str(msgspec.to_builtins(instant(micros)))
