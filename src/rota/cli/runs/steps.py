"""`rota run steps`: list the steps of a run."""

from __future__ import annotations

from typing import Any

import click

from rota.cli.connect import ask
from rota.cli.options import examples, shared
from rota.cli.terminal.output import print_json, print_rows
from rota.cli.terminal.progress import STEP_COLUMNS, step_row
from rota.client.client import Client


@click.command(
    epilog=examples(
        "rota run steps b3e52e11",
        "rota run steps b3e52e11 --json",
        "rota run retry b3e52e11 --from-step parse",
    )
)
@click.argument("id")
@shared
def steps(id: str, database: str | None, as_json: bool) -> None:
    """List the steps of a run.

    Steps that the job declares come first, then others in the order in which they were opened.
    ID is a run's id, or a unique beginning or end of it.
    """

    async def question(client: Client) -> Any:
        return await client.steps(id), await client.time()

    run_steps, now = ask(database, question)
    if as_json:
        print_json({"items": run_steps})
        return
    print_rows(STEP_COLUMNS, [step_row(step, now) for step in run_steps], none="this run has no steps")
