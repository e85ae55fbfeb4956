"""Ids of runs, UUIDv7, and the times that they tell."""

from __future__ import annotations

from uuid import UUID


def last_id_of(micros: int) -> str:
    """No UUIDv7 made up to then is larger. One from a host whose clock is ahead is: its run stays longer."""
    return str(UUID(int=(max(micros, 0) // 1_000 + 1 << 80) - 1))


def milliseconds_of(id: str) -> int:
    """Return when an id was made."""
    return int(id[:8] + id[9:13], 16)
