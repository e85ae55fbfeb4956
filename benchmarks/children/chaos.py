"""The application that `benchmark chaos` breaks things under: naps, and a file in which each tells that it was done."""

import asyncio
import os

from rota import Context, Rota

TOLD = "BENCH_CHAOS_TOLD"
NAP = 0.2
"""Seconds. Slots, not the CPU, say how many can be done: a busy machine then changes little."""

app = Rota()


@app.job
async def nap(ctx: Context) -> None:
    await asyncio.sleep(NAP)
    with open(os.environ[TOLD], "ab", buffering=0) as told:  # noqa: ASYNC230  one write, appended whole
        told.write(f"{ctx.run_id}\n".encode())
