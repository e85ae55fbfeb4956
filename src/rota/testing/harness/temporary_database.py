"""Temporary SQLite file of a harness: in memory where there is room, and copied from one that was migrated."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from rota.store import Store, open_database
from rota.testing.clock import ManualClock

_MEMORY = Path("/dev/shm")  # noqa: S108  # a folder of one's own is made in it
_ENOUGH = 1024**3  # bytes that must be free: some containers have 64 MB in all

_migrated: list[bytes] = []
"""Content of the first file after its migration. A process needs it once."""


def folder_in_memory(free: int = _ENOUGH) -> str | None:
    """Return a folder whose files are in memory, so that no commit waits for a disk; None if there is too little."""
    if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= free:
        return str(_MEMORY)
    return None


async def temporary_database(exiting: AsyncExitStack, clock: ManualClock) -> str:
    """Return the URL of a new file with rota's tables, which is deleted in the end."""
    folder = Path(tempfile.mkdtemp(prefix="rota-", dir=folder_in_memory()))
    exiting.callback(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "rota.db"
    if _migrated:
        file.write_bytes(_migrated[0])
    else:
        await migrate(f"sqlite:///{file}", clock)
        _migrated.append(file.read_bytes())
    return f"sqlite:///{file}"


async def migrate(url: str, clock: ManualClock) -> None:
    """Bring a database up to date."""
    store = Store(open_database(url, clock, accepts_copies=True))
    try:
        await store.migrate()
    finally:
        await store.close()
