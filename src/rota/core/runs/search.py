"""Search for runs by values in their payloads, without revealing redacted values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from rota.core.runs.payload import checked_values, scalar_text
from rota.core.runs.redaction import Discreet, names_secret
from rota.core.runs.run import Run, RunFilter
from rota.errors import Forbidden


class RunPage(msgspec.Struct, frozen=True):
    """Page of runs; `next` is the `before` of the next page, None after the last.

    A page may be short or empty without being the last: a search stops after some time.
    """

    runs: Sequence[Run]
    next: str | None


class ShownFilter(RunFilter, frozen=True, kw_only=True):
    """Filter of a reader who may not see secrets: a run that matches only by a redacted value does not match.

    Otherwise the results, their number and the page boundaries would reveal the value.
    """


def shown_filter(query: RunFilter) -> RunFilter:
    """Return the filter for readers who may not see secrets; only `error` and `payload` can match redacted values."""
    if query.error is None and not query.payload:
        return query
    return ShownFilter(**msgspec.structs.asdict(query))


def require_no_secret(payload: Mapping[str, Any]) -> None:
    """Refuse searches for redacted fields: a reader could find a secret by trying values."""
    for name in payload:
        if any(names_secret(key) for key in name.split(".")):
            raise Forbidden(f"payload.{name:.80} is a secret, which only admins may search for")


def tells(run: Run, query: ShownFilter) -> bool:
    """Return whether the redacted run still shows the error and the values that the filter asks for."""
    payload, error = Discreet(run).payload_and_error()
    if query.error is not None and (error is None or query.error not in f"{error.type}: {error.message}"):
        return False
    return all(_text_at(payload, path) == text for path, text in checked_values(query.payload).items())


def _text_at(value: Any, path: Sequence[str]) -> str | None:
    for key in path:
        value = value.get(key, UNSET) if isinstance(value, dict) else UNSET  # None is a value: JSON null
    return None if value is UNSET or isinstance(value, dict | list) else scalar_text(value, ".".join(path))
