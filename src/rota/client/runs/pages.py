"""Pages of runs, as they stand in answers, and their cursors; paging words of a run's log."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from rota.core.progress.notes import MOST_LINES
from rota.core.runs.dependencies import is_whole
from rota.core.runs.run import Run
from rota.core.runs.search import RunPage
from rota.errors import Invalid
from rota.verbs.pages import Cursor, cursor_at, foreign_cursor, place_of
from rota.verbs.wire import Answer, Wired, answer_in


def checked_place(before: str | None) -> str | None:
    """Return the id after which a page begins."""
    if before is not None and not is_whole(before):
        raise Invalid(f"before must be the whole id of a run, not {before!r:.80}")
    return before


def cursor_below(run_id: str | None) -> str | None:
    """Return the cursor of runs older than this one."""
    return None if run_id is None else cursor_at(checked_place(run_id))


def run_before(cursor: str | None) -> str | None:
    """Return the run id in a cursor."""
    place = None if cursor is None else place_of(cursor)
    if place is not None and not (isinstance(place, str) and is_whole(place)):
        raise foreign_cursor(cursor or "")
    return place


Before = Annotated[str | None, Wired(Cursor | None, cursor_below, run_before)]
Lines = Annotated[int, Meta(ge=1, le=MOST_LINES, description="Maximum number of items")]
LineCursor = Annotated[str | None, Meta(description="`next_cursor` of the previous page, or `cursor` of any line")]
TAIL = "Begin so many lines before the end"


def _written(page: RunPage) -> dict[str, Any]:
    return {"items": page.runs, "next_cursor": cursor_below(page.next)}


def _read(plain: dict[str, Any]) -> RunPage:
    return RunPage(answer_in(plain["items"], list[Run]), run_before(plain["next_cursor"]))


RUN_PAGE = Answer(Run, _written, _read, is_page=True)
