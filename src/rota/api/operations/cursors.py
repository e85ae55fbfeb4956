"""Cursors of lists; opaque to callers, so that their content may change."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime

from rota.core.ledger.occurrences import PagePosition, read_place, written_place
from rota.errors import Invalid


def cursor_of_name(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).rstrip(b"=").decode()


def name_after(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        raise _foreign(cursor) from None


def number_before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise _foreign(cursor)
    return int(cursor)


def cursor_at(from_at: datetime, to_at: datetime, place: PagePosition) -> str:
    return cursor_of_name(written_place(from_at, to_at, place))


def place_of(cursor: str) -> tuple[datetime, datetime, PagePosition]:
    try:
        return read_place(name_after(cursor) or "")
    except (ValueError, OverflowError):
        raise _foreign(cursor) from None


def _foreign(cursor: str) -> Invalid:
    """Build the error for a cursor that rota did not issue."""
    return Invalid(f"cursor {cursor!r:.80} is invalid", hint="use next_cursor of the previous page")
