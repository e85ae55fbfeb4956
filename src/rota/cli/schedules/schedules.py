"""`rota schedule`: list, show, delete, restore, pause, resume, enable, disable and trigger schedules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from rota.cli.options import Group, examples
from rota.cli.schedules import files, history, simulate, update
from rota.cli.schedules.schedule_format import (
    CHANGED_COLUMNS,
    SCHEDULE_COLUMNS,
    changed_row,
    print_fires,
    print_heading,
    schedule_facts,
    schedule_row,
)
from rota.cli.schedules.trigger import TRIGGER
from rota.cli.terminal.expectation_format import expected_facts
from rota.cli.terminal.output import print_facts, print_rows
from rota.cli.terminal.run_format import RUN_COLUMNS, run_row
from rota.cli.verbs.looks import Reply, sentence, table
from rota.cli.verbs.verb_command import Consent, verb_command
from rota.cli.verbs.verb_options import Word
from rota.client.client import Client
from rota.client.schedules.schedules import SchedulesClient
from rota.core.calendar.describe import describe
from rota.core.jobs.status import RESUME_MODES
from rota.core.runs.run import Run, RunFilter
from rota.core.schedules.schedule import Schedule
from rota.core.states import RunState

_SHOWN_FIRES, _SHOWN_RUNS = 5, 5
_CODE = "it is declared in code, and comes back at the next start unless it is removed there"
_NOT_SKIPPED = tuple(state for state in RunState if state is not RunState.SKIPPED)
_FILTERS = ("job", "owner", "text", "state")
_NO_SCHEDULES = "no schedules: create one with `rota schedule create`, or app.schedule(…) in code"


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


async def _last_runs(client: Client, schedules: Sequence[Schedule], _: object) -> dict[str, Run | None]:
    """Return the newest run of each that was not skipped, if there is one, else the newest skipped one."""
    return {schedule.name: await _last_run(client, schedule) for schedule in schedules}


async def _last_run(client: Client, schedule: Schedule) -> Run | None:
    for states in (_NOT_SKIPPED, ()):
        runs = await client.list(RunFilter(schedule=schedule.name, states=states), limit=1)
        if runs:
            return runs[0]
    return None


def _list(reply: Reply) -> None:
    filtered = any(reply.typed.get(name) is not None for name in _FILTERS)
    none = "no schedules match" if filtered else _NO_SCHEDULES
    table(SCHEDULE_COLUMNS, lambda schedule, now: schedule_row(schedule, reply.also[schedule.name], now), none)(reply)


async def _surroundings(client: Client, schedule: Schedule, _: object) -> Any:
    """Return the next plan times, the last runs and the expectations of a schedule."""
    name = schedule.name
    runs = await client.list(RunFilter(schedule=name), limit=_SHOWN_RUNS)
    fires = (await client.schedules.simulate(name, "0s", limit=_SHOWN_FIRES)).fires
    return fires, runs, await client.expectations.find("schedule", name)


def _show(reply: Reply) -> None:
    fires, runs, expected = reply.also
    print_facts([*schedule_facts(reply.value, reply.now), *expected_facts(expected, reply.now)])
    if fires:
        print_heading("next")
        print_fires(fires, reply.now, none="")
    if runs:
        print_heading("last runs")
        print_rows(RUN_COLUMNS, [run_row(run, reply.now) for run in runs], none="")


def _deleted(reply: Reply) -> None:
    sentence("schedule {name} is deleted (`rota schedule restore {name}` undoes it)")(reply)
    owner = reply.before.owner
    if owner == "code":
        click.echo(f"note: {_CODE}", err=True)
    elif owner not in ("api", "cli"):
        click.echo(f"note: it belongs to {owner}, and comes back when that file is applied again", err=True)


_deletion = Consent(
    lambda client, arguments: client.schedules.get(arguments["name"]),
    lambda schedule, _: f"delete schedule {schedule.name} ({describe(schedule.definition.rule, schedule.name)})?",
)
_changed = table(CHANGED_COLUMNS, changed_row)
_command = partial(
    verb_command,
    "schedules",
    settings={"catch_up": {"type": Word(RESUME_MODES, open_ended=True)}},
)

for command in (
    _command(
        SchedulesClient.list,
        _list,
        "rota schedule list",
        "rota schedule list --job crawl --json",
        "rota schedule list --state failing       or late, paused, …",
        words="List schedules by name, with state, rule, next and last run.",
        also=_last_runs,
    ),
    _command(
        SchedulesClient.get,
        _show,
        "rota schedule get news",
        "rota schedule get news --json",
        words="Show a schedule with its policies, next and last runs.",
        also=_surroundings,
    ),
    _command(
        SchedulesClient.delete,
        _deleted,
        "rota schedule delete news",
        "rota schedule delete news --yes",
        words="Delete a schedule; its runs and its history stay.",
        consent=_deletion,
    ),
    _command(SchedulesClient.restore, _changed, "rota schedule restore news"),
    _command(
        SchedulesClient.pause,
        _changed,
        "rota schedule pause news --reason 'the site is down' --until 2h",
        "rota schedule pause news --until 2026-01-31T08:00:00Z",
        words="Pause a schedule: it plans no runs until it is resumed.\n\nExisting runs are not affected.",
    ),
    _command(SchedulesClient.resume, _changed, "rota schedule resume news", "rota schedule resume news --catch-up all"),
    _command(SchedulesClient.enable, _changed, "rota schedule enable news"),
    _command(SchedulesClient.disable, _changed, "rota schedule disable news"),
    *update.COMMANDS,
    *simulate.COMMANDS,
    *files.COMMANDS,
    *history.COMMANDS,
    TRIGGER,
):
    schedule.add_command(command)
