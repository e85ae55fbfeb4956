"""`rota schedule trigger`: run a schedule now, and wait for its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from rota.cli.options import params_of
from rota.cli.terminal.output import emit, on_terminal, print_rows
from rota.cli.terminal.run_format import RUN_COLUMNS, run_row
from rota.cli.terminal.wait import exit_code_of, finish, wait_for_run, wait_timeout_option
from rota.cli.verbs.looks import Reply
from rota.cli.verbs.verb_command import verb_command
from rota.cli.verbs.verb_options import Form
from rota.client.client import Client
from rota.client.schedules.schedules import SchedulesClient
from rota.core.runs.run import Run


def _waiting() -> Form:
    """Return the options of a wait. They are no arguments of the verb."""
    wait = click.Option(["--wait", "waiting"], is_flag=True, help="Wait for the end; exit code as of `rota run wait`.")

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        timeout = values["wait_timeout"]
        return {"waiting": True, "wait_timeout": timeout} if values["waiting"] or timeout is not None else {}

    return Form((), [wait, *params_of(wait_timeout_option)], read)


async def _trigger(
    client: Client, name: str, *, waiting: bool = False, wait_timeout: str | None = None, **options: Any
) -> Sequence[Run]:
    runs = await client.schedules.trigger(name, **options)
    return [await wait_for_run(client, run.id, wait_timeout) for run in runs] if waiting else runs


def _show(reply: Reply) -> None:
    runs, waited = reply.value, "waiting" in reply.arguments
    if len(runs) == 1 and waited:
        finish(runs[0], as_json=False)
    elif waited or on_terminal():
        none = "the schedule has no scopes now: nothing to run"
        print_rows(RUN_COLUMNS, [run_row(run, reply.now) for run in runs], none=none)
    else:
        for run in runs:
            emit(run.id)


def _code(reply: Reply) -> int:
    codes = {exit_code_of(run) for run in reply.value} if "waiting" in reply.arguments else set()
    return 1 if 1 in codes else max(codes, default=0)


TRIGGER = verb_command(
    "schedules",
    SchedulesClient.trigger,
    _show,
    "rota schedule trigger news --wait",
    "rota schedule trigger invoices --scope account/42",
    "rota schedule trigger news --force      even if a run of it has not ended",
    words="Run a schedule now, for each of its scopes.\n\nIn a pipe it prints the ids of the runs.",
    forms=(_waiting,),
    act=_trigger,
    code=_code,
)
