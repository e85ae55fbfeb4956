"""Wait for a run with a line of progress on a terminal, and map its final state to an exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import click

from rota.cli.terminal.format import one_field, one_line, state_cell, visible
from rota.cli.terminal.output import emit, json_text, on_terminal, print_json
from rota.cli.terminal.progress import bar, busy_with, percent
from rota.cli.terminal.run_format import error_line
from rota.client.client import Client
from rota.core.runs.run import Run
from rota.core.states import RunState
from rota.values.durations import span

_RUN_CONTINUES = "interrupted; the run continues"
_INTERVAL = 0.5
_CHECKS_UNTIL_NOTE = 4
_BAR = 20
_CLEAR = "\r\x1b[K"
_EXIT_CODES = {RunState.SUCCEEDED: 0, RunState.CANCELLED: 3, RunState.SKIPPED: 3}


@contextmanager
def abort_on_interrupt() -> Iterator[None]:
    """Turn Ctrl-C into an abort whose message says that only the command ended, not the run."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.Abort(_RUN_CONTINUES) from None


class ProgressLine:
    """A line that is rewritten in place on a terminal, and cleared at the end. Silent without one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._write("")

    def show(self, text: str) -> None:
        self._write(text)

    def _write(self, text: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"{_CLEAR}{_fitting(text) if text else ''}", err=True, nl=False)


def _fitting(text: str) -> str:
    """Shorten the text to one line, because a wrapped line could not be cleared."""
    from rich.text import Text

    from rota.cli.terminal.tables import terminal

    line = Text(visible(text))
    line.truncate(max(1, terminal().width - 1), overflow="ellipsis")
    return line.plain


wait_timeout_option = click.option(
    "--wait-timeout", metavar="DURATION", help='Wait, at most this long ("90s", "5m"); then exit code 75.'
)
"""For commands whose `--timeout` is something else, or that have none."""


async def wait_for_run(client: Client, id: str, timeout: str | None) -> Run:
    """Return the run once it is final; raise `StillRunning` after `timeout`."""
    waiting = asyncio.create_task(client.wait(id, timeout))
    try:
        await _show_progress(client, id, waiting)
    except asyncio.CancelledError:
        raise click.Abort(_RUN_CONTINUES) from None
    return await waiting


async def _show_progress(client: Client, id: str, waiting: asyncio.Task[Run]) -> None:
    queued = 0
    with ProgressLine() as line:
        while not (await asyncio.wait([waiting], timeout=_INTERVAL))[0]:
            run = await client.get(id)
            queued = queued + 1 if run.state is RunState.QUEUED else 0
            if queued == _CHECKS_UNTIL_NOTE and (why := await _stuck_reason(client, run)):
                line.show("")
                click.echo(f"note: the run waits: {visible(why)}", err=True)
            elapsed = span(await client.time() - run.created_at)
            tries = f"{run.job}  attempt {run.attempt}/{run.max_attempts}  {elapsed}"
            line.show("  ".join([state_cell(run.state).shown or "", *await _progress(client, run), tries]))


async def _stuck_reason(client: Client, run: Run) -> str | None:
    """Return why no worker will ever take the queued run, or None if its turn will come."""
    explanation = await client.explain(run.id)
    is_taken = explanation.facts.get("workers") and not explanation.facts.get("paused")
    return None if explanation.verdict != RunState.QUEUED.value or is_taken else one_line(" ".join(explanation.words))


async def _progress(client: Client, run: Run) -> list[str]:
    """Return the progress as words; none if the run reports nothing."""
    progress = await client.progress(run.id)
    if progress.percentage is None and progress.summary is None:
        return []
    words = one_line(busy_with(progress, run.state))
    return [bar(progress.percentage, _BAR), percent(progress.percentage), *([words] if words else [])]


def finish(run: Run, *, as_json: bool) -> int:
    """Print how the run ended, and return the exit code that says the same."""
    if as_json:
        print_json(run)
    elif on_terminal():
        _print_final_state(run)
    else:
        emit("\t".join([run.id, run.state.value, one_field(outcome_of(run))]))
    return exit_code_of(run)


def exit_code_of(run: Run) -> int:
    return _EXIT_CODES.get(run.state, 1)


def _print_final_state(run: Run) -> None:
    took = f" in {span(run.finished_at - run.created_at)}" if run.finished_at else ""
    emit(visible(f"{state_cell(run.state).shown}  {run.job}  {run.id}{took}"))
    print_outcome(run)


def print_outcome(run: Run) -> None:
    if outcome := outcome_of(run):
        emit(visible(outcome))
    if run.error:
        click.echo(f"hint: rota run get {run.id}", err=True)


def outcome_of(run: Run) -> str:
    if run.error:
        return error_line(run.error)
    if run.result is not None:
        return json_text(run.result)
    return run.reason or ""
