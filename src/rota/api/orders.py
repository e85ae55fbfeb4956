"""What a caller may send to enqueue a run, and the order it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec

from rota.api.requests import shaped
from rota.client import Order
from rota.core.names import checked_name
from rota.core.retry import Exponential
from rota.core.unique import PartKey
from rota.durations import parse_duration

MOST_RUNS = 500


class ScopeBody(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    id: str


class UniqueBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    fields: list[str] = []
    period: str | None = None
    on_conflict: str = "existing"
    clear: list[str] = []


class BackoffBody(msgspec.Struct, forbid_unknown_fields=True, tag="exponential"):
    base: str = "60s"
    factor: Annotated[float, msgspec.Meta(ge=1, le=100)] = 2.0
    cap: str = "1h"
    jitter: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.1


class RunBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A field that is null was not given."""

    job: str
    payload: dict[str, Any] = {}
    queue: str | None = None
    priority: int | None = None
    delay: str | None = None
    run_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    key: str | None = None
    scope: ScopeBody | None = None
    unique: bool | str | list[str] | UniqueBody | None = None
    max_attempts: int | None = None
    backoff: str | list[str] | BackoffBody | None = None
    timeout: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    after: list[str | dict[str, str]] | None = None
    ref: str | None = None
    only_workers: list[str] | None = None
    labels: list[str] | None = None
    min_worker_version: str | None = None


class ManyRunsBody(msgspec.Struct, forbid_unknown_fields=True):
    runs: Annotated[list[Any], msgspec.Meta(min_length=1, max_length=MOST_RUNS)]


EnqueueBody = RunBody | ManyRunsBody


def order_of(value: object, path: str, idempotency_key: str | PartKey | None) -> Order:
    """`path` is where `value` lies in the body."""
    body = shaped(value, RunBody, path)
    options: dict[str, Any] = {
        name: _option(given)
        for name, given in msgspec.structs.asdict(body).items()
        if given is not None and name not in ("job", "payload")
    }
    if idempotency_key is not None:
        options["idempotency_key"] = idempotency_key
    return Order(checked_name(body.job, "job"), body.payload, options)


def orders_of(value: object, idempotency_key: str | None) -> list[Order]:
    body = shaped(value, ManyRunsBody)
    keys = _part_keys(idempotency_key, len(body.runs))
    orders: list[Order] = []
    for place, item in enumerate(body.runs):
        order = order_of(item, f"$.runs[{place}]", keys[place])
        # The very same options: then the client prepares them together. What metadata holds is not told apart by ==.
        if orders and order.options == orders[-1].options and "metadata" not in order.options:
            order = Order(order.job, order.arguments, orders[-1].options)
        orders.append(order)
    return orders


def _part_keys(key: str | None, count: int) -> Sequence[PartKey | None]:
    """One for each run: the request's own for the first, so that any other request with it meets this one.

    ␟ cannot come from a header.
    """
    if key is None:
        return [None] * count
    return [PartKey(f"{key}␟{place}" if place else key, count) for place in range(count)]


def _option(given: Any) -> Any:
    match given:
        case ScopeBody():
            return (given.kind, given.id)
        case UniqueBody():
            return msgspec.to_builtins(given)
        case BackoffBody():
            return Exponential(parse_duration(given.base), given.factor, parse_duration(given.cap), given.jitter)
        case _:
            return given
