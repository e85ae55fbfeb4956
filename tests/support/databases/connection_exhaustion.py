"""Exhaust PostgreSQL's connections for a while."""

from __future__ import annotations

import asyncio
import time

import asyncpg

_CUT = "select pg_terminate_backend(pid) from pg_stat_activity where datname like $1 and random() < 0.2"


async def crowd(url: str, others: str, seconds: float) -> int:
    """Take every connection the moment it becomes free, then close all; return how many were held.

    They are the free ones, and those of the databases named like `others`.
    """
    held: list[asyncpg.Connection[asyncpg.Record]] = []
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            try:
                held.append(await asyncpg.connect(url))
            except asyncpg.TooManyConnectionsError:
                await held[0].execute(_CUT, others)
                await asyncio.sleep(0.02)
        return len(held)
    finally:
        for connection in held:
            await connection.close()
