"""Protocol between a worker and its child processes: messages on their socket, and how memory is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

_LENGTH = 4
_encoder = msgspec.msgpack.Encoder()


class ProcessCall(msgspec.Struct, frozen=True):
    """A handler by name, its arguments and its limits; `payload` and `context` are JSON objects.

    `cpu_limit` is in seconds, `memory_limit` in bytes, for the whole process.
    """

    module: str
    qualname: str
    main_path: str | None
    payload: bytes
    context: bytes
    cpu_limit: float | None = None
    memory_limit: int | None = None


class Setup(msgspec.Struct, frozen=True, tag=True):
    """The first message to a child: settings that make its imports behave like its parent's."""

    sys_path: list[str]
    argv: list[str]
    pythonpath: str | None
    logs: tuple[str, str] | None = None
    """Level and format of the parent's log, if rota set it up."""
    preparations: tuple[str, ...] = ()
    """Functions, as MODULE:NAME, to call before the first import of a handler."""


class Call(msgspec.Struct, frozen=True, tag=True):
    serial: int
    call: ProcessCall


class Cancel(msgspec.Struct, frozen=True, tag=True):
    serial: int


class Shutdown(msgspec.Struct, frozen=True, tag=True):
    """Announcement that the worker is stopping: the handler has its grace to end by itself."""

    serial: int


class Reply(msgspec.Struct, frozen=True, tag=True):
    """The answer to the handler's request of this number."""

    serial: int
    no: int
    body: bytes


class Began(msgspec.Struct, frozen=True, tag=True):
    """Announcement that the handler was imported and is about to run. `memory_fresh`: the memory peak was reset."""

    serial: int
    cpu_ms: int
    memory_fresh: bool


class Note(msgspec.Struct, frozen=True, tag=True):
    serial: int
    kind: str
    body: bytes


class Answer(msgspec.Struct, frozen=True, tag=True):
    serial: int
    status: Literal["returned", "raised"]
    value: bytes
    cpu_time_ms: int | None
    memory_peak_mb: int | None


class Death(msgspec.Struct, frozen=True, omit_defaults=True):
    """End of a process without an answer; `ours`: this worker killed it."""

    exit_code: int | None
    signal: int | None
    ours: bool = False
    cpu_time_ms: int | None = None
    cpu_limit: float | None = None
    memory_limit: int | None = None


Downward = Setup | Call | Cancel | Shutdown | Reply
Upward = Began | Note | Answer
Message = TypeVar("Message")


def frame(message: Downward | Upward) -> bytes:
    body = _encoder.encode(message)
    return len(body).to_bytes(_LENGTH, "big") + body


class Frames(Generic[Message]):
    """Decoder of a byte stream into length-prefixed messages."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[Message]) -> None:
        self._decoder = decoder
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        self._rest += data
        while len(self._rest) >= _LENGTH:
            end = _LENGTH + int.from_bytes(self._rest[:_LENGTH], "big")
            if len(self._rest) < end:
                return
            body = bytes(self._rest[_LENGTH:end])
            del self._rest[:end]
            yield self._decoder.decode(body)


def memory_peak_mb(pid: int) -> int | None:
    """Return the peak memory from VmHWM; None where there is no /proc.

    `ru_maxrss` would include what the parent held when it forked.
    """
    peak = _kilobytes(pid, "VmHWM:")
    return None if peak is None else -(-peak // 1024)


def data_size(pid: int | str) -> int | None:
    """Return the memory that RLIMIT_DATA counts, in bytes."""
    size = _kilobytes(pid, "VmData:")
    return None if size is None else size * 1024


def _kilobytes(pid: int | str, field: str) -> int | None:
    with suppress(OSError, ValueError):
        status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
        _, separator, after = status.partition(field)
        if separator:
            return int(after.split(maxsplit=1)[0])
    return None
