"""Jobs of rq-scheduler as Redis holds them: hashes whose pickled parts are read without running anything."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from rota.core.formats.task_queues.restricted_pickle import read_pickle
from rota.core.formats.task_queues.tasks import kind_of

SCHEDULED = "rq:scheduler:scheduled_jobs"
"""Key of the sorted set with the ids of all jobs and their next times."""
HASH = "rq:job:"
_MOST_BYTES = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # `fromtimestamp` raises an OSError for some times, as if a file were missing
_NOT_IMPORTED = ("ttl", "enqueue_at_front", "webhooks", "success_callback_name", "failure_callback_name")


class RqHash(msgspec.Struct, frozen=True):
    """Job as Redis holds it; `at`: its next time, in seconds since 1970."""

    id: str
    at: float
    fields: Mapping[bytes, bytes]


def job_of(stored: RqHash) -> dict[str, Any]:
    """Return the job as the JSON list has it; raise with the reason if it cannot be read."""
    fields = {key.decode(): value for key, value in stored.fields.items()}
    if not fields.get("data"):
        raise ValueError("its job is no longer in Redis: rq-scheduler forgets it when its time comes")
    match _unpacked(_inflated(fields["data"])):
        case [str() as function, None, args, kwargs]:
            call = {"func_name": function, "args": args, "kwargs": kwargs}
        case [_, object(), _, _]:
            raise ValueError("it calls a method of an object, and a payload has none")
        case other:
            raise ValueError(f"its data are a {kind_of(other)}, and no call")
    if fields.get("dependency_ids") or fields.get("dependency_id"):
        raise ValueError("it waits for other jobs: `after` of a run, or a schedule that is following another")
    meta = _unpacked(fields["meta"]) if fields.get("meta") else {}
    left_out = {key: fields[key].decode("utf-8", "replace") for key in _NOT_IMPORTED if fields.get(key)}
    return {
        "id": stored.id, **call, "meta": meta, **left_out,
        "origin": fields["origin"].decode() if fields.get("origin") else None,
        "timeout": int(fields["timeout"]) if fields.get("timeout") else None,
        "scheduled_at": (_EPOCH + timedelta(seconds=stored.at)).isoformat(),
    }  # fmt: skip


def _inflated(data: bytes) -> bytes:
    """Decompress what is compressed, up to the size that the reader of pickles takes: few bytes may stand for many."""
    reader = zlib.decompressobj()
    try:
        inflated = reader.decompress(data, _MOST_BYTES)
    except zlib.error:
        return data
    if reader.unconsumed_tail:
        raise ValueError(f"its data have more than {_MOST_BYTES} bytes")
    return inflated


def _unpacked(data: bytes) -> Any:
    """Read a value of rq's serializers: a pickle, or JSON. Pickles of protocol 2 and newer begin with 128."""
    if data.startswith(b"\x80"):
        value = read_pickle(data, {})
        return list(value) if isinstance(value, tuple) else value
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        raise ValueError("its data are neither a pickle nor JSON: it has a serializer of its own") from None
