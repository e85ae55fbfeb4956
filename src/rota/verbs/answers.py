"""Answers of verbs as JSON: the same over REST and from the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rota.verbs.bounds import Bound, check
from rota.verbs.pages import Limit
from rota.verbs.parameters import item_of, request_of
from rota.verbs.verb import Declared
from rota.verbs.wire import written_answer


def is_silent(declared: Declared) -> bool:
    """Return whether a verb answers nothing."""
    return declared.verb.answer is None and request_of(declared).returns in (None, type(None))


def page_of(
    declared: Declared, items: Sequence[Any], limit: int | None = None, cursor: str | None = None
) -> tuple[Sequence[Any], str | None]:
    """Return the page of a verb's list, and the cursor of the next one. A verb without pages has all in one."""
    paging = declared.verb.page
    if paging is None:
        return items, None
    if limit is not None and "limit" not in request_of(declared).parameters:  # otherwise the verb has checked it
        check(limit, Bound("limit", "limit", Limit, None, None))
    size = limit or paging.size
    return paging.cut(items, size, cursor) if paging.after is None else paging.limited(items, size)


def document_of(
    declared: Declared,
    result: Any,
    limit: int | None = None,
    cursor: str | None = None,
    visible: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """Return what a verb answers as JSON; `visible` removes what the caller may not see."""
    returns = request_of(declared).returns
    if not request_of(declared).lists:
        return _written(declared, visible(result), returns)
    items, following = page_of(declared, result, limit, cursor)
    written = [_written(declared, visible(item), item_of(returns)) for item in items]
    return {"items": written, "next_cursor": following}


def _written(declared: Declared, value: Any, kind: Any) -> Any:
    if declared.verb.answer is not None:
        return declared.verb.answer.encode(value)
    return written_answer(value, kind)
