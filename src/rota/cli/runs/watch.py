"""`rota run watch`: follow a run until its end, redrawn in place or a line per change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol, Self

import click

from rota.cli.connect import ask
from rota.cli.options import examples, streamed
from rota.cli.terminal.format import one_field, rfc3339
from rota.cli.terminal.output import can_redraw, emit, is_read, json_text
from rota.cli.terminal.poll import Patience
from rota.cli.terminal.progress import RunSnapshot, busy_with, look
from rota.cli.terminal.wait import exit_code_of, only_looking, outcome_of, print_outcome
from rota.client.client import Client
from rota.errors import StillRunning
from rota.values.durations import parse_duration

_EVERY = 0.4
_NOBODY_READS = 141
"""The exit code of a program that SIGPIPE ended; 0 would mean that the run succeeded."""


class ReaderGone(Exception):
    """The reader of the output has gone."""


class RunPrinter(Protocol):
    def show(self, look: RunSnapshot) -> None: ...


class Lines:
    """Prints a line for each change."""

    def __init__(self, line_of: Callable[[RunSnapshot], str]) -> None:
        self._line_of = line_of
        self._told: object = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Clean up nothing."""

    def show(self, look: RunSnapshot) -> None:
        told = look.told
        is_news, self._told = told != self._told, told
        if not (emit(self._line_of(look)) if is_news else is_read()):
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
@streamed
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
        with only_looking():
            last = ask(database, lambda client: _watch(client, id, seconds, _shower(drawn=drawn, as_json=as_json)))
    except ReaderGone:
        return _NOBODY_READS
    if drawn:
        print_outcome(last.run)
    return exit_code_of(last.run)


async def _watch(
    client: Client, id: str, seconds: float | None, opening: AbstractContextManager[RunPrinter]
) -> RunSnapshot:
    patience = Patience()
    seen = await patience.ask(lambda: look(client, id))
    run_id = seen.run.id
    with opening as shower:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    shower.show(seen)
                    if seen.run.state.is_final:
                        return seen
                    await asyncio.sleep(_EVERY)
                    seen = await patience.ask(lambda: look(client, run_id))
        except TimeoutError:
            raise StillRunning(run_id, seen.run.state) from None


def _shower(*, drawn: bool, as_json: bool) -> AbstractContextManager[RunPrinter]:
    if drawn:
        from rota.cli.runs.live import Screen

        return Screen()
    return Lines(_json_line if as_json else _plain_line)


def _json_line(look: RunSnapshot) -> str:
    return json_text(look.document())


def _plain_line(look: RunSnapshot) -> str:
    run, said = look.run, look.progress
    percentage = "" if said.percentage is None else f"{said.percentage:g}"
    words = outcome_of(run) if run.state.is_final else busy_with(said, run.state)
    fields = [rfc3339(look.at), run.state.value, f"{run.attempt}/{run.max_attempts}", percentage, words]
    return "\t".join(one_field(field) for field in fields)
