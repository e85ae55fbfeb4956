"""`rota run`: list, show and wait for runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from rota.cli.connect import ask
from rota.cli.options import Group, examples, shared
from rota.cli.runs.enqueue import enqueue
from rota.cli.runs.filter_form import filter_form
from rota.cli.runs.logs import logs
from rota.cli.runs.run_control import COMMANDS
from rota.cli.runs.watch import watch
from rota.cli.terminal.output import on_terminal, print_facts, print_rows
from rota.cli.terminal.progress import (
    STEP_COLUMNS,
    RunSnapshot,
    progress_facts,
    read_with_relations,
    related_facts,
    step_row,
)
from rota.cli.terminal.run_format import (
    ATTEMPT_COLUMNS,
    MEMBER_COLUMNS,
    RELATED_COLUMNS,
    REPLICA_COLUMNS,
    RUN_COLUMNS,
    attempt_row,
    member_row,
    related_row,
    replica_row,
    run_facts,
    run_row,
)
from rota.cli.terminal.wait import finish, wait_for_run
from rota.cli.verbs.looks import Reply, table
from rota.cli.verbs.verb_command import verb_command
from rota.client.client import Client
from rota.client.runs.runs import RunVerbs
from rota.core.ledger.family import Family, Kinship
from rota.core.runs.run import Run, RunFilter
from rota.core.runs.search import RunPage
from rota.core.workers.replicas import Replica
from rota.verbs.pages import cursor_at


@click.group(
    cls=Group,
    epilog=examples("rota run enqueue crawl --wait", "rota run list --state failed", "rota run watch b3e52e11"),
)
def run() -> None:
    """Enqueue, list, show, watch, cancel and retry runs.

    ID is a run's id, or a unique beginning or end of it. Runs that were enqueued together have ids that begin alike:
    use the end, at least four characters. `rota explain ID` tells why a run is in its state.
    """


async def _newest(
    client: Client, run_filter: RunFilter | None = None, *, limit: int = 50, before: str | None = None
) -> RunPage:
    """Search until the page is full, however long it takes."""
    runs = await client.list(run_filter, limit=limit, before=before)
    return RunPage(runs, runs[-1].id if len(runs) == limit else None)


def _list(reply: Reply) -> None:
    page: RunPage = reply.value
    print_rows(RUN_COLUMNS, [run_row(item, reply.now) for item in page.runs], none="no runs match")
    if page.next and on_terminal():
        click.echo(f"more: --cursor {cursor_at(page.next)}", err=True)


async def _surroundings(client: Client, run: Run, _: object) -> tuple[RunSnapshot, Sequence[Replica]]:
    return await read_with_relations(client, run.id), await client.replicas(run.id)


def _show(reply: Reply) -> None:
    snapshot, replicas = reply.also
    print_facts([*run_facts(snapshot.run, snapshot.at), *related_facts(snapshot), *progress_facts(snapshot)])
    if on_terminal() and snapshot.progress.steps:
        click.echo()
        print_rows(STEP_COLUMNS, [step_row(step, snapshot.at) for step in snapshot.progress.steps], none="")
    rows = [attempt_row(attempt, snapshot.at) for attempt in snapshot.attempts]
    if on_terminal() and rows:
        click.echo()
    print_rows(ATTEMPT_COLUMNS, rows, none="")
    if on_terminal() and replicas:
        click.echo()
        print_rows(REPLICA_COLUMNS, [replica_row(replica, reply.now) for replica in replicas], none="")


def _family(reply: Reply) -> None:
    family: Family = reply.value
    before: dict[str, list[str]] = {}
    for link in family.links:
        before.setdefault(link.to_id, []).append(f"{_LINKS[Kinship(link.kind)]} {link.from_id}")
    print_rows(MEMBER_COLUMNS, [member_row(run, before.get(run.id, [])) for run in family.items], none="")
    if family.truncated:
        click.echo("more runs are linked with these: --limit", err=True)


_LINKS = {Kinship.DEPENDENCY: "after", Kinship.REPLICA: "replica of", Kinship.RETRY: "retry of"}
_command = partial(verb_command, "")
_related = table(RELATED_COLUMNS, related_row, "none")
_OF_ID = "ID is a run's id, or a unique beginning or end of it."

for command in (
    enqueue,
    _command(
        RunVerbs.page,
        _list,
        "rota run list --state failed,timed_out --job crawl",
        "rota run list --tag nightly --limit 200 --json",
        "rota run list --state queued | cut -f1",
        name="list",
        words="List runs, newest first.",
        forms=(filter_form,),
        act=_newest,
    ),
    _command(
        RunVerbs.get,
        _show,
        "rota run get b3e52e11",
        "rota run get b3e52e11 --json",
        words="Show a run with its progress, steps, attempts and replicas.\n\n"
        f"The runs that it follows, and those that follow it, are listed, too. {_OF_ID}",
        also=_surroundings,
    ),
    _command(
        RunVerbs.attempts,
        table(ATTEMPT_COLUMNS, attempt_row, "this run has not begun"),
        "rota run attempts b3e52e11",
        "rota run attempts b3e52e11 --json",
    ),
    _command(
        RunVerbs.steps,
        table(STEP_COLUMNS, step_row, "this run has no steps"),
        "rota run steps b3e52e11",
        "rota run steps b3e52e11 --json",
        "rota run retry b3e52e11 --from-step parse",
        words="List the steps of a run.\n\n"
        f"Steps that the job declares come first, then others in the order in which they were opened. {_OF_ID}",
    ),
    _command(RunVerbs.parents, _related, "rota run parents b3e52e11", "rota run parents b3e52e11 --json"),
    _command(RunVerbs.children, _related, "rota run children b3e52e11", "rota run children b3e52e11 --json"),
    _command(
        RunVerbs.family,
        _family,
        "rota run family b3e52e11",
        "rota run family b3e52e11 --limit 20 --json",
    ),
    _command(
        RunVerbs.replicas,
        table(REPLICA_COLUMNS, replica_row, "this run has no replicas"),
        "rota run replicas b3e52e11",
        "rota run replicas b3e52e11 --json",
    ),
    watch,
    logs,
    *COMMANDS,
):
    run.add_command(command)


@run.command(
    epilog=examples(
        "rota run wait b3e52e11",
        "rota run wait b3e52e11 --timeout 5m || echo 'did not succeed'",
    ),
)
@click.argument("id")
@click.option("--timeout", metavar="DURATION", help='Give up after this long: "90s", "5m".')
@shared
def wait(id: str, timeout: str | None, database: str | None, as_json: bool) -> int:
    """Wait until a run has ended; the exit code tells how.

    0 succeeded, 1 failed, timed out or expired, 3 cancelled or skipped, 75 still running after --timeout.
    ID is a run's id, or a unique beginning or end of it.
    """
    return finish(ask(database, lambda client: wait_for_run(client, id, timeout)), as_json=as_json)
