"""Run short Python programs in processes of their own."""

import asyncio
import sys
from pathlib import Path

from tests.support.wait import PATIENCE

ROOT = Path(__file__).parents[3]


async def run_python(program: str, *arguments: str) -> str:
    """Run a program and return its output; raise with its error output if it fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, complaint = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, complaint.decode()
    return out.decode()
