"""Request bodies that enqueue runs, and their conversion to orders."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec

from rota.api.operations.request import shaped, shaped_all
from rota.client.client import Order
from rota.client.jobs.job_body import BackoffBody, UniqueBody, option_of
from rota.core.jobs.unique import PartKey
from rota.values.names import checked_name

MOST_RUNS = 500
_NO_OPTIONS = ("job", "payload")


class ScopeBody(msgspec.Struct, forbid_unknown_fields=True):
    """A scope."""

    kind: str
    """Kind of the scope, such as `account`."""
    id: str
    """Id of the scope."""


class RunBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A run to enqueue. `null` counts as omitted."""

    job: str
    payload: dict[str, Any] = {}
    queue: str | None = None
    priority: int | None = None
    delay: str | None = None
    run_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """Not before this time."""
    key: str | None = None
    scope: ScopeBody | None = None
    unique: bool | str | list[str] | UniqueBody | None = None
    max_attempts: int | None = None
    backoff: str | list[str] | BackoffBody | None = None
    timeout: str | None = None
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    after: list[str | dict[str, str]] | None = None
    """Runs that must end first: ids, refs, or objects with `run`, `on` and `otherwise`."""
    inputs: dict[str, str | list[Any]] | None = None
    """Arguments that are results of other runs: `{"pages": run}`, or a list of runs. The run follows those."""
    ref: str | None = None
    only_workers: list[str] | None = None
    labels: list[str] | None = None
    min_worker_version: str | None = None


_RUNS = {"items": {"$ref": "#/components/schemas/RunBody"}}  # `Any` for Python: `shaped_all` converts them faster


class ManyRunsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Runs to enqueue together."""

    runs: Annotated[list[Any], msgspec.Meta(min_length=1, max_length=MOST_RUNS, extra_json_schema=_RUNS)]
    """The runs, all or none of which are enqueued."""


EnqueueBody = RunBody | ManyRunsBody


def order_of(value: object, path: str, idempotency_key: str | PartKey | None) -> Order:
    """Convert a body to an order; `path` is where `value` is in the body."""
    body = shaped(value, RunBody, path)
    return Order(checked_name(body.job, "job"), body.payload, _options(value, body, idempotency_key))


def orders_of(value: object, idempotency_key: str | None) -> list[Order]:
    """Convert a body of many runs to orders."""
    items = shaped(value, ManyRunsBody).runs
    bodies = shaped_all(items, RunBody, "$.runs")
    for name in dict.fromkeys([body.job for body in bodies]):
        checked_name(name, "job")
    before: dict[str, Any] = {}
    orders: list[Order] = []
    for item, body, key in zip(items, bodies, _part_keys(idempotency_key, len(items)), strict=True):
        options = _options(item, body, key)
        # Share one dict between equal options: the client prepares runs with the same options object together. Metadata
        # is excluded, because == does not tell 1 from True or 1.0.
        if options == before and "metadata" not in options:
            options = before
        orders.append(Order(body.job, body.payload, options))
        before = options
    return orders


def _options(value: Any, body: RunBody, idempotency_key: str | PartKey | None) -> dict[str, Any]:
    """Return the options that were given. Iterate over those only: most runs have few of many."""
    options = {
        name: _option(option)
        for name in value
        if name not in _NO_OPTIONS and (option := getattr(body, name)) is not None
    }
    if idempotency_key is not None:
        options["idempotency_key"] = idempotency_key
    return options


def _part_keys(key: str | None, count: int) -> Sequence[PartKey | None]:
    """Return one key per run. The first run has the request's own key, so that any other request with it meets this
    run.

    ␟ cannot come from a header, so derived keys do not collide with callers' keys.
    """
    if key is None:
        return [None] * count
    return [PartKey(f"{key}␟{place}" if place else key, count) for place in range(count)]


def _option(value: Any) -> Any:
    match value:
        case ScopeBody():
            return (value.kind, value.id)
        case UniqueBody() | BackoffBody():
            return option_of(value)
        case _:
            return value
