"""Pages of lists: how a list continues where the previous page ended."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from rota.errors import Invalid

T = TypeVar("T")

MOST = 500
"""Most items of a page over HTTP."""
Limit = Annotated[int, msgspec.Meta(ge=1, le=MOST, description="Maximum number of items")]
LongLimit = Annotated[int, msgspec.Meta(ge=1, le=1_000, description="Maximum number of items")]
"""Of lists with small items."""
Cursor = Annotated[str, msgspec.Meta(max_length=2_000, description="`next_cursor` of the previous page")]


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Paging of a list. `key` returns an item's place, which its cursor holds; without one, a list that only grows at
    its end is cut by position.

    `after` is the parameter of the method that takes the place of the last item seen; the method then also has a
    `limit`. Without it, the method returns the whole list, and the page is cut from it by `key`.
    """

    key: Callable[[T], Any] | None = None
    after: str | None = None
    size: int = MOST

    def cut(self, items: Sequence[T], limit: int, cursor: str | None) -> tuple[Sequence[T], str | None]:
        """Return the page of a whole list that follows `cursor`, and the cursor of the next one."""
        if self.key is None:
            return _cut_by_position(items, limit, cursor)
        ordered = sorted(items, key=self.key)
        if cursor is not None:
            place, key = _comparable(place_of(cursor)), self.key
            try:
                ordered = [item for item in ordered if _comparable(key(item)) > place]
            except TypeError:  # a cursor of another list
                raise foreign_cursor(cursor) from None
        return self.limited(ordered[:limit], limit) if len(ordered) > limit else (ordered, None)

    def limited(self, items: Sequence[T], limit: int) -> tuple[Sequence[T], str | None]:
        """Return a page that was read, and the cursor of the next one unless the page is short."""
        if self.key is None or not items or len(items) < limit:
            return items, None
        return items, cursor_at(self.key(items[-1]))


def cursor_at(place: object) -> str:
    """Encode a place as a cursor; opaque to callers, so that its content may change."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def place_of(cursor: str, kind: Any = Any) -> Any:
    """Decode a cursor; the place in it has the type `kind`."""
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        return msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=kind)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise foreign_cursor(cursor) from None


def foreign_cursor(cursor: str) -> Invalid:
    """Build the error for a cursor that rota did not issue."""
    return Invalid(f"cursor {cursor!r:.80} is invalid", hint="use next_cursor of the previous page")


def _cut_by_position(items: Sequence[T], limit: int, cursor: str | None) -> tuple[Sequence[T], str | None]:
    start = 0 if cursor is None else place_of(cursor)
    if not isinstance(start, int) or isinstance(start, bool) or start < 0:
        raise foreign_cursor(cursor or "")
    end = start + limit
    return items[start:end], cursor_at(end) if len(items) > end else None


def _comparable(place: Any) -> Any:
    return tuple(place) if isinstance(place, list) else place
