"""Decode a server's responses into the values that a local client returns."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from rota.client.handle import Door, Handle, handle_by
from rota.core.ledger.audit import Event, event_in
from rota.core.runs.run import Run
from rota.errors import RotaError
from rota.remote.problems import ServerTrouble
from rota.values.instants import micros_at
from rota.verbs.wire import answer_in

T = TypeVar("T")


def read(body: bytes, kind: type[T]) -> T:
    """Decode a whole body: `read(body, Run)`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise undecodable(error) from None


def items(body: bytes, kind: type[T]) -> list[T]:
    """Decode the items of a list, `{"items": […]}`."""
    return [value(item, kind) for item in read(body, dict[str, Any]).get("items", ())]


def value(plain: Any, kind: type[T]) -> T:
    """Convert a value whose type JSON alone does not tell: durations are texts such as `90s`."""
    try:
        return answer_in(plain, kind)  # type: ignore[no-any-return]
    except (msgspec.ValidationError, RotaError) as error:
        raise undecodable(error) from None


def undecodable(error: Exception) -> ServerTrouble:
    """Build the error for a response that cannot be decoded."""
    hint = "check that the server and this program have the same version of rota"
    return ServerTrouble(f"the server's response cannot be decoded: {error}", hint=hint)


def event_of(plain: dict[str, Any]) -> Event:
    """Decode an event, including instants in its details."""
    try:
        return event_in(plain)
    except msgspec.ValidationError as error:
        raise undecodable(error) from None


def handle_of(run: Run, door: Door, *, created: bool) -> Handle[Any]:
    """Return the handle of a run that the server enqueued or found."""
    if not created:
        return handle_by(door, run.id, created)
    return handle_by(door, run.id, created, micros_at(run.created_at), micros_at(run.run_at))
