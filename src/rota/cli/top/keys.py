"""Keys of `rota top`: how they change the view, and which actions they request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.cli.terminal.format import short_id

PANES = ("attention", "runs", "failures", "errors", "queues", "workers", "fires")
_OF_RUNS = ("runs", "failures")
_MOVES = {"j": 1, "down": 1, "k": -1, "up": -1, "pagedown": 10, "pageup": -10, "G": 1 << 30, "g": -(1 << 30)}
_CHOOSE = "select a run first, with j and k"


class Action(msgspec.Struct, frozen=True):
    """A requested action: `quit`, or `cancel` or `retry` of a run, of the job with that `name`."""

    verb: str
    run: str = ""
    name: str = ""

    @property
    def words(self) -> str:
        """Return the action as words, with the end of the run's id, which other commands accept."""
        return f"{self.verb} run {short_id(self.run)}" + (f" of {self.name}" if self.name else "")


class Row(msgspec.Struct, frozen=True):
    """Identity of a line. `id` is unique in its part; `name` is for people."""

    id: str
    name: str


class View(msgspec.Struct, frozen=True, kw_only=True):
    """State of the screen, as keys change it.

    `chosen`: the selected row of each part, by its id. If the row disappears, none is selected, so that a key never
    acts on the row that took its place. `asking`: the action to confirm. `shown`: the run whose page is open, scrolled
    by `offset` lines.
    """

    pane: str = "runs"
    chosen: Mapping[str, str] = {}
    paused: bool = False
    helping: bool = False
    asking: Action | None = None
    shown: str | None = None
    offset: int = 0
    message: str = ""

    def changed(self, **changes: object) -> View:
        return msgspec.structs.replace(self, **changes)

    def place(self, rows: Sequence[Row]) -> int | None:
        """Return the index of the selected row among `rows`, or None."""
        selected = self.chosen.get(self.pane)
        return next((place for place, row in enumerate(rows) if row.id == selected), None)


def pressed(view: View, key: str, rows: Sequence[Row]) -> tuple[View, Action | None]:
    """Return the view after a key, and the action it requests. `rows` are those of the focused part."""
    if view.asking is not None:
        return view.changed(asking=None, message=""), view.asking if key in ("y", "Y") else None
    view = view.changed(message="")
    if key == "q":
        return (view, Action("quit")) if not (view.shown or view.helping) else (_back(view), None)
    if view.helping or key == "escape":
        return _back(view), None
    if key in ("?", "h"):
        return view.changed(helping=True), None
    if key == "p":
        return view.changed(paused=not view.paused), None
    if key in _MOVES:
        return _moved(view, _MOVES[key], rows), None
    if key in ("tab", "backtab") and not view.shown:
        return _next_pane(view, 1 if key == "tab" else -1), None
    return _run_key(view, key, rows)


def _back(view: View) -> View:
    return view.changed(helping=False) if view.helping else view.changed(shown=None, offset=0)


def _next_pane(view: View, by: int) -> View:
    return view.changed(pane=PANES[(PANES.index(view.pane) + by) % len(PANES)])


def _moved(view: View, by: int, rows: Sequence[Row]) -> View:
    if view.shown:
        return view.changed(offset=max(0, view.offset + by))  # the upper bound is applied when it is drawn
    if not rows:
        return view
    before = view.place(rows)
    first = 0 if by > 0 else len(rows) - 1
    after = first if before is None and abs(by) == 1 else max(0, min(len(rows) - 1, (before or 0) + by))
    return view.changed(chosen={**view.chosen, view.pane: rows[after].id})


def _run_key(view: View, key: str, rows: Sequence[Row]) -> tuple[View, Action | None]:
    if key not in ("c", "r", "enter"):
        return view, None
    if view.shown and key == "enter":
        return _back(view), None
    place = view.place(rows) if view.pane in _OF_RUNS else None
    run = view.shown or (None if place is None else rows[place].id)
    if run is None:
        return view.changed(message=_CHOOSE), None
    if key == "enter":
        return view.changed(shown=run, offset=0), None
    name = next((row.name for row in rows if row.id == run), "")
    if key == "c":
        return view.changed(asking=Action("cancel", run, name)), None
    return view, Action("retry", run, name)
