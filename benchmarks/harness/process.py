"""A measured process: started, made ready, told to go, and heard line by line.

The process prints one JSON object a line. `{"ready": true}` says that imports, connections and whatever else belongs
to starting are over; it then waits for a line on its standard input. See `benchmarks/children/protocol.py`.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0


class ProcessFailedError(Exception):
    """A measured process ended, or said nothing for too long."""


class Process:
    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed when the process has ended
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
            limit=1 << 24,
        )
        await self.hear("ready")
        return self

    async def __aexit__(self, *_: object) -> None:
        """What it has to say has been said: no graceful stop, which for some peers takes seconds."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        self._errors.close()

    async def go(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        await self._process.stdin.drain()

    async def hear(self, word: str, patience: float = PATIENCE) -> Any:
        """The value of the next line that has this word; other lines are dropped."""
        while True:
            line = await self.line(patience)
            if word in line:
                return line[word]

    async def line(self, patience: float = PATIENCE) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        while True:
            try:
                raw = await asyncio.wait_for(self._process.stdout.readline(), patience)
            except TimeoutError:
                raise ProcessFailedError(f"silent for {patience:.0f} s\n{self._complaint()}") from None
            if not raw:
                raise ProcessFailedError(f"ended early\n{self._complaint()}")
            if raw.startswith(b"{"):  # a library may print what it likes
                return dict(json.loads(raw))

    def _complaint(self) -> str:
        self._errors.seek(0)
        return f"{' '.join(self._command[:4])}\n{self._errors.read()[-3000:]}"
