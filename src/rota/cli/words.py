"""Facts in a terminal's words: states with a symbol, ages, spans, text that cannot command the terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from rota.core.states import RunState

_SYMBOLS = {
    RunState.SCHEDULED: ("◷", "blue"),
    RunState.QUEUED: ("○", "blue"),
    RunState.RUNNING: ("▶", "cyan"),
    RunState.WAITING: ("◔", "cyan"),
    RunState.CANCELLING: ("◌", "yellow"),
    RunState.SUCCEEDED: ("✓", "green"),
    RunState.FAILED: ("✗", "red"),
    RunState.TIMED_OUT: ("⧖", "red"),
    RunState.CANCELLED: ("⊘", "yellow"),
    RunState.EXPIRED: ("†", "red"),
    RunState.SKIPPED: ("↷", "yellow"),
}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_IN_A_CELL = {**_CONTROLS, ord("\\"): "\\\\", ord("\n"): "\\n", ord("\t"): "\\t"}


class Cell(msgspec.Struct, frozen=True):
    """One fact: `plain` for programs, `shown` (if it differs) in `style` for people."""

    plain: str
    shown: str | None = None
    style: str = ""


def visible(text: str) -> str:
    """Error messages and payloads come from anywhere: none of them may move the cursor or set a title."""
    return text.translate(_CONTROLS)


def one_field(text: str) -> str:
    return text.translate(_IN_A_CELL)


def text_cell(text: object) -> Cell:
    return Cell("" if text is None else str(text))


def state_cell(state: RunState) -> Cell:
    symbol, colour = _SYMBOLS[state]
    return Cell(state.value, f"{symbol} {state.value.replace('_', ' ')}", colour)


def rfc3339(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def age_cell(at: datetime | None, now: datetime) -> Cell:
    return Cell("") if at is None else Cell(rfc3339(at), age(at, now))


def instant_cell(at: datetime | None, now: datetime) -> Cell:
    return Cell("") if at is None else Cell(rfc3339(at), f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC ({age(at, now)})")


def age(at: datetime, now: datetime) -> str:
    seconds = int(abs(now - at).total_seconds())
    if seconds == 0:
        return "now"
    size, unit = next(unit for unit in _UNITS if seconds >= unit[0])
    return f"{seconds // size}{unit} ago" if at < now else f"in {seconds // size}{unit}"


def span(length: timedelta) -> str:
    """Two units at most: 340ms, 1.2s, 3m12s, 2h5m."""
    seconds = length.total_seconds()
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    size, unit = next(unit for unit in _UNITS if seconds >= unit[0])
    smaller, smaller_unit = _UNITS[_UNITS.index((size, unit)) + 1]
    return f"{int(seconds // size)}{unit}{int(seconds % size // smaller)}{smaller_unit}"


def span_cell(began: datetime | None, ended: datetime | None, now: datetime) -> Cell:
    """Still going on: until now, for people only."""
    if began is None:
        return Cell("")
    if ended is None:
        return Cell("", span(now - began))
    return Cell(f"{(ended - began).total_seconds():.3f}", span(ended - began))
