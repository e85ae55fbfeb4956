"""`rota schedule`: list, show, delete, pause, resume, enable, disable and trigger schedules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

import click

from rota.cli.connect import actor, ask
from rota.cli.options import Group, catch_up_option, examples, instant_of, scope_of, shared
from rota.cli.schedules import files, history, simulate, update
from rota.cli.schedules.schedule_format import (
    SCHEDULE_COLUMNS,
    print_fires,
    print_heading,
    print_schedule,
    schedule_facts,
    schedule_row,
)
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.expectation_format import expected_facts
from rota.cli.terminal.output import emit, on_terminal, print_deleted, print_facts, print_json, print_rows
from rota.cli.terminal.run_format import RUN_COLUMNS, run_row
from rota.cli.terminal.wait import exit_code_of, finish, wait_for_run
from rota.client.client import Client
from rota.core.calendar.describe import describe
from rota.core.runs.run import Run, RunFilter
from rota.core.schedules.schedule import Schedule
from rota.core.schedules.view import view
from rota.core.states import RunState
from rota.errors import RotaError

_SHOWN_FIRES, _SHOWN_RUNS = 5, 5
_CODE = "it is declared in code, and comes back at the next start unless it is removed there"
_NOT_SKIPPED = tuple(state for state in RunState if state is not RunState.SKIPPED)


@click.group(
    cls=Group,
    epilog=examples(
        "rota schedule create news crawl --every 30m",
        "rota schedule list",
        "rota schedule apply schedules.toml",
    ),
)
def schedule() -> None:
    """Create, list, pause, trigger and simulate schedules."""


for _command in (
    *update.COMMANDS, *simulate.COMMANDS, *files.COMMANDS, *history.COMMANDS,
):  # fmt: skip
    schedule.add_command(_command)


@schedule.command("list", epilog=examples("rota schedule list", "rota schedule list --job crawl --json"))
@click.option("--job", metavar="NAME", help="Only schedules of this job.")
@click.option("--owner", metavar="NAME", help="Only schedules of this owner: file:NAME, code, cli or api.")
@click.option("--limit", type=int, default=100, show_default=True, metavar="N", help="At most 1000.")
@click.option("--after", metavar="NAME", help="The page after the one that ended with this name.")
@shared
def list_schedules(limit: int, database: str | None, as_json: bool, **options: Any) -> None:
    """List schedules by name, with state, rule, next and last run."""

    async def question(client: Client) -> Any:
        rows = await client.schedules.list(limit=limit, **options)
        return [(schedule, await _last_run(client, schedule)) for schedule in rows], await client.time()

    rows, now = ask(database, question)
    next_cursor = rows[-1][0].name if len(rows) == limit else None
    if as_json:
        print_json({"items": [view(schedule, last) for schedule, last in rows], "next_cursor": next_cursor})
        return
    none = "no schedules: create one with `rota schedule create`, or app.schedule(…) in code"
    print_rows(SCHEDULE_COLUMNS, [schedule_row(schedule, last, now) for schedule, last in rows], none=none)
    if next_cursor and on_terminal():
        click.echo(f"more: --after {next_cursor}", err=True)


async def _last_run(client: Client, schedule: Schedule) -> Run | None:
    """Return the newest run that was not skipped, if there is one, else the newest skipped one."""
    for states in (_NOT_SKIPPED, ()):
        runs = await client.list(RunFilter(schedule=schedule.name, states=states), limit=1)
        if runs:
            return runs[0]
    return None


@schedule.command("get", epilog=examples("rota schedule get news", "rota schedule get news --json"))
@click.argument("name")
@shared
def get_schedule(name: str, database: str | None, as_json: bool) -> None:
    """Show a schedule with its policies, next and last runs."""

    async def question(client: Client) -> Any:
        schedule = await client.schedules.get(name)
        runs = await client.list(RunFilter(schedule=name), limit=_SHOWN_RUNS)
        fires = await client.schedules.preview(name, _SHOWN_FIRES)
        expected = await client.expectations.find("schedule", name)
        return schedule, fires, runs, await _last_run(client, schedule), expected, await client.time()

    schedule, fires, runs, last, expected, now = ask(database, question)
    if as_json:
        print_json({**view(schedule, last), "expected": expected, "next": fires, "runs": runs})
        return
    print_facts([*schedule_facts(schedule, now), *expected_facts(expected, now)])
    if fires:
        print_heading("next")
        print_fires(fires, now, none="")
    if runs:
        print_heading("last runs")
        print_rows(RUN_COLUMNS, [run_row(run, now) for run in runs], none="")


@schedule.command("delete", epilog=examples("rota schedule delete news", "rota schedule delete news --yes"))
@click.argument("name")
@yes_option
@shared
def delete_schedule(name: str, yes: bool, database: str | None, as_json: bool) -> None:
    """Delete a schedule; its runs and its history stay."""
    schedule = ask(database, lambda client: client.schedules.get(name))
    if not yes:
        rule = describe(schedule.definition.rule, name)
        require_consent(f"delete schedule {name} ({rule})?", command=f"rota schedule delete {name}")
    ask(database, lambda client: client.schedules.delete(name, actor=actor()))
    if as_json:
        print_deleted(name=name)
    else:
        emit(f"deleted {name}" if on_terminal() else name)
        if schedule.owner == "code":
            click.echo(f"note: {_CODE}", err=True)
        elif schedule.owner not in ("api", "cli"):
            click.echo(
                f"note: it belongs to {schedule.owner}, and comes back when that file is applied again", err=True
            )


@schedule.command(
    epilog=examples(
        "rota schedule pause news --reason 'the site is down' --until 2h",
        "rota schedule pause news --until 2026-01-31T08:00:00Z",
    )
)
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Stored with the pause.")
@click.option("--until", metavar="TIME", help='Resume at this time, or after this duration: "2h".')
@shared
def pause(name: str, reason: str | None, until: str | None, database: str | None, as_json: bool) -> None:
    """Pause a schedule: it plans no runs until it is resumed.

    Existing runs are not affected.
    """
    end = _until(until)
    _change(database, as_json, lambda c: c.schedules.pause(name, reason=reason, until=end, actor=actor()))


def _until(text: str | None) -> datetime | str | None:
    return instant_of(text) if text and "-" in text else text


@schedule.command(epilog=examples("rota schedule resume news", "rota schedule resume news --catch-up all"))
@click.argument("name")
@catch_up_option
@shared
def resume(name: str, catch_up: str, database: str | None, as_json: bool) -> None:
    """Resume a paused schedule."""
    _change(database, as_json, lambda c: c.schedules.resume(name, catch_up=catch_up, actor=actor()))


@schedule.command(epilog=examples("rota schedule enable news"))
@click.argument("name")
@shared
def enable(name: str, database: str | None, as_json: bool) -> None:
    """Enable a schedule, from now on."""
    _change(database, as_json, lambda c: c.schedules.enable(name, actor=actor()))


@schedule.command(epilog=examples("rota schedule disable news"))
@click.argument("name")
@shared
def disable(name: str, database: str | None, as_json: bool) -> None:
    """Disable a schedule; to stop it for a while, pause it."""
    _change(database, as_json, lambda c: c.schedules.disable(name, actor=actor()))


def _change(database: str | None, as_json: bool, change: Callable[[Client], Awaitable[Schedule]]) -> None:
    async def command(client: Client) -> Any:
        return await change(client), await client.time()

    changed, now = ask(database, command)
    print_schedule(changed, now, as_json=as_json)


@schedule.command(
    epilog=examples(
        "rota schedule trigger news --wait",
        "rota schedule trigger invoices --scope account/42",
        "rota schedule trigger news --force      even if a run of it has not ended",
    )
)
@click.argument("name")
@click.option("--scope", type=scope_of, metavar="KIND/ID", help="Only for this scope.")
@click.option("--force", is_flag=True, help="Ignore its overlap and failure policies.")
@click.option("--wait", "waiting", is_flag=True, help="Wait for the end; exit code as of `rota run wait`.")
@shared
def trigger(
    name: str, scope: tuple[str, str] | None, force: bool, waiting: bool, database: str | None, as_json: bool
) -> int:
    """Run a schedule now, for each of its scopes.

    In a pipe it prints the ids of the runs.
    """

    async def command(client: Client) -> Any:
        try:
            runs = await client.schedules.trigger(name, scope=scope, force=force, actor=actor())
        except RotaError as error:
            if error.hint == "force it, or wait":
                error.hint = "--force runs it anyway; or wait until it has ended"
            raise
        if waiting:
            runs = [await wait_for_run(client, run.id, None) for run in runs]
        return runs, await client.time()

    runs, now = ask(database, command)
    _print_triggered(runs, now, waited=waiting, as_json=as_json)
    codes = {exit_code_of(run) for run in runs} if waiting else set()
    return 1 if 1 in codes else max(codes, default=0)


def _print_triggered(runs: Sequence[Run], now: datetime, *, waited: bool, as_json: bool) -> None:
    if as_json:
        print_json({"items": runs})
    elif len(runs) == 1 and waited:
        finish(runs[0], as_json=False)
    elif waited or on_terminal():
        print_rows(
            RUN_COLUMNS, [run_row(run, now) for run in runs], none="the schedule has no scopes now: nothing to run"
        )
    else:
        for run in runs:
            emit(run.id)
