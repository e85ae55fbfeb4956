"""`rota run watch`: follow a run until its end, redrawn in place or a line per change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self

import click

from rota.cli.connect import ask
from rota.cli.options import examples, streaming
from rota.cli.terminal.format import one_field, rfc3339
from rota.cli.terminal.output import can_redraw, emit, is_read, json_text
from rota.cli.terminal.poll import Patience
from rota.cli.terminal.progress import RunSnapshot, busy_with, read_run
from rota.cli.terminal.wait import abort_on_interrupt, exit_code_of, outcome_of, print_outcome
from rota.client.client import Client
from rota.errors import StillRunning
from rota.values.durations import parse_duration

_EVERY = 0.4
_NOBODY_READS = 141
"""The exit code of a program that SIGPIPE ended; 0 would mean that the run succeeded."""


class ReaderGone(Exception):
    """The reader of the output has gone."""


class RunPrinter(Protocol):
    def show(self, snapshot: RunSnapshot) -> None: ...


class Lines:
    """Prints a line for each change."""

    def __init__(self, line_of: Callable[[RunSnapshot], str]) -> None:
        self._line_of = line_of
        self._last_state: object = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Clean up nothing."""

    def show(self, snapshot: RunSnapshot) -> None:
        state = snapshot.visible_state
        is_news, self._last_state = state != self._last_state, state
        if not (emit(self._line_of(snapshot)) if is_news else is_read()):
            raise ReaderGone


@click.command(
    epilog=examples(
        "rota run watch b3e52e11",
        "rota run watch b3e52e11 --timeout 5m || echo 'did not succeed'",
        "rota run watch b3e52e11 --json | jq -c '[.state, .progress.percentage]'",
    )
)
@click.argument("id")
@click.option("--timeout", metavar="DURATION", help='Give up after this long: "90s", "5m".')
@streaming
def watch(id: str, timeout: str | None, database: str | None, as_json: bool) -> int:
    """Watch a run until it has ended.

    On a terminal, its state, progress, steps and attempts are redrawn in place. In a pipe, each change is a line: time,
    state, attempt, percentage, and what the run is busy with; the last line has its result or error. With --json each
    line is what `rota run get --json` prints. The exit code is that of `rota run wait`, or 141 if the reader has gone
    (`| head`).

    ID is a run's id, or a unique beginning or end of it.
    """
    seconds = None if timeout is None else parse_duration(timeout).total_seconds()
    drawn = not as_json and can_redraw()
    try:
        with abort_on_interrupt():
            last = ask(database, lambda client: _watch(client, id, seconds, _printer(drawn=drawn, as_json=as_json)))
    except ReaderGone:
        return _NOBODY_READS
    if drawn:
        print_outcome(last.run)
    return exit_code_of(last.run)


async def _watch(
    client: Client, id: str, seconds: float | None, printing: AbstractContextManager[RunPrinter]
) -> RunSnapshot:
    patience = Patience()
    snapshot = await patience.ask(lambda: read_run(client, id))
    run_id = snapshot.run.id
    with printing as printer:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    printer.show(snapshot)
                    if snapshot.run.state.is_final:
                        return snapshot
                    await asyncio.sleep(_EVERY)
                    snapshot = await patience.ask(lambda: read_run(client, run_id))
        except TimeoutError:
            raise StillRunning(run_id, snapshot.run.state) from None


def _printer(*, drawn: bool, as_json: bool) -> AbstractContextManager[RunPrinter]:
    if drawn:
        from rota.cli.runs.live import Screen

        return Screen()
    return Lines(_json_line if as_json else _plain_line)


def _json_line(snapshot: RunSnapshot) -> str:
    return json_text(snapshot.document())


def _plain_line(snapshot: RunSnapshot) -> str:
    run, progress = snapshot.run, snapshot.progress
    percentage = "" if progress.percentage is None else f"{progress.percentage:g}"
    words = outcome_of(run) if run.state.is_final else busy_with(progress, run.state)
    fields = [rfc3339(snapshot.at), run.state.value, f"{run.attempt}/{run.max_attempts}", percentage, words]
    return "\t".join(one_field(field) for field in fields)
