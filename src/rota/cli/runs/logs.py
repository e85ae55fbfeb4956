"""`rota run logs`: log lines of a run, past and live."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from datetime import UTC

import click
import msgspec

from rota.cli.connect import ask
from rota.cli.options import examples, streaming
from rota.cli.terminal.format import one_field, one_line, rfc3339, visible
from rota.cli.terminal.output import coloured, emit, is_read, json_text, on_terminal
from rota.cli.terminal.poll import Patience
from rota.cli.terminal.wait import abort_on_interrupt
from rota.client.client import Client
from rota.core.progress.notes import LogLine

_EVERY = 0.4
_LEVELS = ("debug", "info", "warning", "error", "critical")
_COLOURS = {"debug": "bright_black", "warning": "yellow", "error": "red", "critical": "red"}
_MARGIN = " " * 24


class LogOptions(msgspec.Struct, frozen=True):
    attempt: int | None
    level: str
    tail: int | None
    follow: bool
    limit: int | None = None
    cursor: str | None = None

    def has(self, line: LogLine) -> bool:
        is_loud = _LEVELS.index(line.level) >= _LEVELS.index(self.level)
        return is_loud and self.attempt in (None, line.attempt)


@click.command(
    epilog=examples(
        "rota run logs b3e52e11 -f",
        "rota run logs b3e52e11 --attempt 2 --level warning",
        "rota run logs b3e52e11 -n 100 | cut -f5",
        "rota run logs b3e52e11 --json | jq -r .text",
    )
)
@click.argument("id")
@click.option("-f", "--follow", is_flag=True, help="Continue until the run has ended.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Only lines of this attempt.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Maximum number of lines.")
@click.option("--cursor", metavar="CURSOR", help="Only lines after the one with this cursor.")
@click.option("-n", "--tail", type=click.IntRange(min=1), metavar="N", help="Only the last N lines, and later ones.")
@click.option(
    "--level",
    type=click.Choice(_LEVELS, case_sensitive=False),
    default="debug",
    help="Only lines of this level and above.",
)
@streaming
def logs(id: str, database: str | None, as_json: bool, **values: object) -> None:
    """Show the log of a run, oldest line first.

    In a pipe, a line has the fields time, level, attempt, logger and text; with --json it is a JSON object.
    ID is a run's id, or a unique beginning or end of it.
    """
    options = msgspec.convert(values, LogOptions)
    line_of = _json_line if as_json else LogPrinter() if on_terminal() else _plain_line
    with abort_on_interrupt() if options.follow else nullcontext():
        count = ask(database, lambda client: _print_lines(client, id, options, line_of))
    if not count and on_terminal() and not as_json:
        emit("no log lines")


async def _print_lines(client: Client, id: str, options: LogOptions, line_of: Callable[[LogLine], str]) -> int:
    """Print log lines, and return how many."""
    count = 0
    async for line in _lines(client, id, options):
        count += 1
        if not emit(line_of(line)):
            break
        if count == options.limit:
            if on_terminal():
                click.echo(f"more: --cursor {line.cursor}", err=True)
            break
    return count


async def _lines(client: Client, id: str, options: LogOptions) -> AsyncIterator[LogLine]:
    patience = Patience()
    last: deque[LogLine] = deque(maxlen=options.tail)
    run = await patience.ask(lambda: client.get(id))
    run_id, cursor = run.id, options.cursor
    is_first = True
    while True:
        # An attempt's lines are written before its end: if the run was final before this page, it is the last one.
        is_last = run.state.is_final or not options.follow
        while page := await patience.ask(lambda after=cursor: client.logs(run_id, cursor=after)):  # type: ignore[misc]
            cursor = page[-1].cursor
            lines = [line for line in page if options.has(line)]
            if is_first and options.tail is not None:
                last.extend(lines)
                continue
            for line in lines:
                yield line
        for line in last:
            yield line
        last.clear()
        is_first = False
        if is_last or not is_read():
            return
        await asyncio.sleep(_EVERY)
        run = await patience.ask(lambda: client.get(run_id))


def _json_line(line: LogLine) -> str:
    return json_text(line)


def _plain_line(line: LogLine) -> str:
    fields = [rfc3339(line.at), line.level, str(line.attempt), line.logger, line.text]
    return "\t".join(one_field(field) for field in fields)


class LogPrinter:
    """Formats log lines for people: attempt and day as headings, then time, level and text."""

    def __init__(self) -> None:
        self._above: tuple[int, str] | None = None

    def __call__(self, line: LogLine) -> str:
        at = line.at.astimezone(UTC)
        above = (line.attempt, f"{at:%Y-%m-%d}")
        title = coloured(f"attempt {above[0]}, {above[1]} UTC", "bright_black")
        head = "" if above == self._above else f"{title}\n"
        self._above = above
        time = f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"
        level = coloured(f"{line.level:<8}", _COLOURS.get(line.level))
        # Continuation lines, such as those of a traceback, are indented like the first.
        text = visible(line.text).rstrip().replace("\n", f"\n{_MARGIN}")
        is_own = line.logger.startswith("rota.job.")
        name = "" if is_own else coloured(f"  ({one_line(line.logger)})", "bright_black")
        return f"{head}{coloured(time, 'bright_black')}  {level}  {text}{name}"
