"""Witnesses outside of the database: files to which each process appends whole lines, synced before it goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

_open: dict[tuple[int, Path], int] = {}


def append(path: Path, line: object) -> None:
    """One write to a file opened for appending: whole lines, whoever is killed meanwhile."""
    key = os.getpid(), path  # a child that was forked opens its own
    if key not in _open:
        _open[key] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(_open[key], msgspec.json.encode(line) + b"\n")
    os.fsync(_open[key])


def read(path: Path, kind: type[T]) -> list[T]:
    return list(_lines([path], kind)) if path.exists() else []


def read_all(folder: Path, kind: type[T]) -> list[T]:
    return list(_lines(sorted(folder.glob("*.lines")), kind))


def _lines(paths: list[Path], kind: type[T]) -> Iterator[T]:
    for path in paths:
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=kind)
