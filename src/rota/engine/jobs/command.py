"""Command jobs: run a program in its own process group, log its output, and turn its exit status into an outcome."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from rota.core.jobs.command import CommandLine, filled, is_retried
from rota.core.progress.control_flow import Fail, Retry
from rota.core.runs.claim import Claim
from rota.engine.handlers.current_run import claimed_run
from rota.engine.jobs.command_limits import ProcessLimits
from rota.engine.jobs.command_output import Output
from rota.engine.jobs.http import facts_of
from rota.engine.observability.log_capture import speaker
from rota.errors import Invalid

UNLIMITED = ProcessLimits()
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
_LARGEST_VARIABLE = 100_000  # the kernel takes no more than 128 kB
_CHUNK = 65_536
_DRAIN = 0.5
_LONGEST_COURTESY = 5.0
_COURTESY_AT_SHUTDOWN = 0.5
_DEATH = 2.0


class CommandJob:
    """Handler of one command job. `grace` is the time in seconds that a run has to end when it is cancelled."""

    def __init__(self, command: CommandLine, grace: float, limits: ProcessLimits = UNLIMITED) -> None:
        self._command = command
        self._grace = grace
        self._limits = limits

    async def execute(self, payload: str) -> dict[str, Any]:
        """Run the program of a command job."""
        claim = claimed_run()
        try:
            command = filled(self._command, facts_of(claim, payload))
        except Invalid as error:
            raise Fail(str(error), code="bad_command") from None
        with contextlib.ExitStack() as open_files:
            pipes = [_OutputPipe(level, open_files) for level in (logging.INFO, logging.WARNING)]
            process = await self._start(command, claim, payload, [pipe.written for pipe in pipes], open_files)
            for pipe in pipes:
                pipe.written.close()
            try:
                readers = [asyncio.create_task(pipe.listen()) for pipe in pipes]
                try:
                    await process.wait()
                    await asyncio.wait(readers, timeout=_DRAIN)
                finally:
                    await self._end(process)
                    for task in readers:
                        task.cancel()
                    await asyncio.gather(*readers, return_exceptions=True)
            finally:
                for pipe in pipes:
                    pipe.output.end()
        return self._ended(process.returncode or 0, *(pipe.output.tail for pipe in pipes))

    async def _start(
        self, command: CommandLine, claim: Claim, payload: str, outputs: list[IO[bytes]], files: contextlib.ExitStack
    ) -> asyncio.subprocess.Process:
        environment = _environment(command, claim, payload)
        argv = self._limits.argv(command.argv, environment)
        try:
            return await asyncio.create_subprocess_exec(
                *argv,
                stdin=_stdin(payload, files) if command.stdin else asyncio.subprocess.DEVNULL,
                stdout=outputs[0],
                stderr=outputs[1],
                cwd=command.cwd,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            missing = error.filename if isinstance(error.filename, str) else command.argv[0]
            raise Fail(f"{command.argv[0]} cannot be run: {error.strerror}: {missing}", code="no_command") from None

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Kill the process group. If the program ended by itself, this is for processes that it left behind."""
        if process.returncode is None:
            courtesy = _COURTESY_AT_SHUTDOWN if _is_shutting_down() else min(self._grace / 2, _LONGEST_COURTESY)
            _kill(process.pid, signal.SIGTERM)
            await _wait(process, courtesy)
        _kill(process.pid, signal.SIGKILL)
        await _wait(process, _DEATH)

    def _ended(self, exit_code: int, output: str, errors: str) -> dict[str, Any]:
        if exit_code == 0:
            return {"exit_code": 0, "output": output}
        if exceeded := self._limits.exceeded(exit_code):
            raise exceeded
        how = f"exit status {exit_code}" if exit_code > 0 else f"killed by {_name(-exit_code)}"
        message = f"{self._command.argv[0]}: {how}{self._limits.remark(exit_code)}"
        if text := errors or output:
            message += f": {text[-1_000:]}"
        if is_retried(self._command, exit_code):
            raise Retry(message, code="exit_status")
        raise Fail(message, code="exit_status")


class _OutputPipe:
    """One output stream, read through a pipe of our own.

    With asyncio's pipe we would wait for every descendant of the program that keeps it open.
    """

    def __init__(self, level: int, files: contextlib.ExitStack) -> None:
        read, written = os.pipe()
        self._read = os.fdopen(read, "rb", 0)
        self.written = files.enter_context(os.fdopen(written, "wb", 0))
        files.callback(self._read.close)
        self.output = Output(_log_writer(level), time.monotonic)

    async def listen(self) -> None:
        reader = asyncio.StreamReader(limit=_CHUNK)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._read)
        try:
            while chunk := await reader.read(_CHUNK):
                self.output.feed(chunk)
                await asyncio.sleep(0)  # a full pipe is always ready: yield, or it would block the event loop
        finally:
            transport.close()


def _log_writer(level: int) -> Callable[[str], None]:
    """Return a function that writes to the run's log directly, not through the worker's `logging`."""
    listening = speaker.get()
    if listening is None:
        return lambda _: None
    listener, attempt = listening
    return lambda text: listener.say(attempt, level, "command", text)


def _is_shutting_down() -> bool:
    listening = speaker.get()
    return listening is not None and bool(listening[1].shutting_down)


def _stdin(payload: str, files: contextlib.ExitStack) -> IO[bytes]:
    """Return a file with the payload. A pipe would block us if the program does not read it."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the others
    files.callback(file.close)
    file.write(payload.encode())
    file.seek(0)
    return file


def _environment(command: CommandLine, claim: Claim, payload: str) -> Mapping[str, str]:
    """Return the program's environment, with few of the worker's variables: the others may be secret."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    own = {
        "ROTA_RUN_ID": claim.run_id,
        "ROTA_ATTEMPT": str(claim.attempt),
        "ROTA_IDEMPOTENCY_KEY": claim.idempotency_key,
    }
    if command.stdin is None:
        if len(payload.encode()) > _LARGEST_VARIABLE:
            problem = f"a payload of more than {_LARGEST_VARIABLE} bytes does not fit into the environment"
            raise Fail(f'{problem}; declare stdin="payload"', code="bad_command")
        own["ROTA_PAYLOAD"] = payload
    return {**inherited, **command.env, **own}


def _kill(group: int, how: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, how)


async def _wait(process: asyncio.subprocess.Process, seconds: float) -> None:
    """Wait for the process, shielded: a second interruption must not stop the cleanup."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(process.wait()), seconds)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
