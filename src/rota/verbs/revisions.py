"""Conditions on the revision of what a verb changes: `expected_revision` of a method is `If-Match` of a request.

Revision 0 stands for "there is none" (`If-None-Match: *`), `ANY` for "there is one" (`If-Match: *`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

Revisions = int | Sequence[int]
"""The revision that is expected, or several of which one is."""

ANY: Sequence[int] = range(1, sys.maxsize)
_UNKNOWN = -1  # an ETag that no revision has
_TAG = re.compile(r'"(\d{1,18})"')


def is_expected(revision: int, expected: Revisions | None) -> bool:
    """Return whether a revision is (among) the expected one; None expects nothing."""
    return expected is None or (revision == expected if isinstance(expected, int) else revision in expected)


def condition_in(if_match: str | None, if_none_match: str | None) -> Revisions | None:
    """Return the expected revisions that the headers of a request name."""
    if if_match is None:
        return 0 if if_none_match == "*" else None
    tags = [part.strip() for part in if_match.split(",")]
    if "*" in tags:
        return ANY
    revisions = [int(match[1]) if (match := _TAG.fullmatch(tag)) else _UNKNOWN for tag in tags]
    return revisions[0] if len(revisions) == 1 else revisions


def written_condition(expected: Revisions | None) -> dict[str, str]:
    """Return the headers that `condition_in` reads back."""
    if expected is None:
        return {}
    if expected == 0:
        return {"If-None-Match": "*"}
    if expected == ANY:
        return {"If-Match": "*"}
    return {"If-Match": ", ".join(etag(each) for each in ([expected] if isinstance(expected, int) else expected))}


def etag(revision: object) -> str:
    """Return a revision as an `ETag`."""
    return f'"{revision}"'
