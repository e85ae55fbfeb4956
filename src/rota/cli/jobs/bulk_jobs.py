"""`rota job bulk`: one command for all jobs that match filters."""

from __future__ import annotations

from typing import Any

import click

from rota.cli.connect import actor, ask
from rota.cli.options import examples, shared
from rota.cli.terminal.confirm import require_consent, yes_option
from rota.cli.terminal.output import emit, on_terminal, print_json
from rota.core.jobs.status import RESUME_MODES, JobAction, JobFilter
from rota.core.runs.bulk import BulkResult
from rota.errors import Conflict


@click.command(
    "bulk",
    epilog=examples(
        "rota job bulk pause --tag billing --reason maintenance",
        "rota job bulk resume --state paused --yes",
        "rota job bulk retry --name 'import-*' --state failed --yes --json",
    ),
)
@click.argument("action", type=click.Choice([action.value for action in JobAction]))
@click.option("--name", metavar="PATTERN", help="Only jobs of this name, or matching a pattern: 'import-*'.")
@click.option("--kind", metavar="KIND", help="Only jobs of this kind: python, http, command, external, pipeline.")
@click.option("--queue", metavar="NAME", help="Only jobs of this queue.")
@click.option("--tag", metavar="TAG", help="Only jobs with this tag.")
@click.option("--state", metavar="STATE", help="Only jobs in this state: paused, failed, running, …")
@click.option("--all", "everything", is_flag=True, help="All jobs, without any filter.")
@click.option("--reason", metavar="TEXT", help="Stored with the pauses, or with the cancelled runs.")
@click.option(
    "--catch-up", type=click.Choice(RESUME_MODES), default="skip", help="Plan times of the pause that still run."
)
@yes_option
@shared
def bulk(
    action: str,
    everything: bool,
    reason: str | None,
    catch_up: str,
    yes: bool,
    database: str | None,
    as_json: bool,
    **conditions: Any,
) -> int:
    """Pause, resume, cancel or retry all jobs that match filters.

    The command counts the matching jobs, and asks.
    """
    job_filter = JobFilter(**conditions)

    def act(**how: Any) -> BulkResult:
        options = {"everything": everything, "reason": reason, "catch_up": catch_up, "actor": actor(), **how}
        return ask(database, lambda client: client.change_jobs(action, job_filter, **options))

    expected = None
    if not yes:
        expected = act(dry_run=True).matched
        if expected:
            require_consent(f"{action} {_many(expected)}?", command=f"rota job bulk {action} …")
    result = act(expected=expected)
    if as_json:
        print_json(result)
    else:
        emit(f"{action}: {_many(result.done)}" if on_terminal() else str(result.done))
        for refused in result.refused:
            click.echo(f"note: {action} refused for {_many(refused.count)}: {refused.message}", err=True)
    return Conflict.exit_code if result.refused and not result.done else 0


def _many(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


COMMANDS = (bulk,)
