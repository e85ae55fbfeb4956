"""The command line: parse, call the client, print."""

from __future__ import annotations

import click

from rota.cli.beginning import init
from rota.cli.completing import let_complete
from rota.cli.cron import cron
from rota.cli.doctor import doctor
from rota.cli.errors import errors
from rota.cli.events import audit
from rota.cli.expecting import expect
from rota.cli.explaining import explain
from rota.cli.exporting import export
from rota.cli.importing import import_group
from rota.cli.jobs import job
from rota.cli.notifying import notify
from rota.cli.options import examples
from rota.cli.program import Program
from rota.cli.promote import promote
from rota.cli.queues import queue
from rota.cli.quotas import quota
from rota.cli.runs import run
from rota.cli.schedules import schedule
from rota.cli.serving import dev, server
from rota.cli.tokens import token
from rota.cli.top import top
from rota.cli.upkeep import completion, migrate, prune
from rota.cli.workers import workers
from rota.cli.working import worker
from rota.version import __version__

__all__ = ["main", "root"]

EXIT_CODES = """\b
Exit codes:
  0    ok
  1    the run failed, timed out or expired; or something went wrong; `expect ls --breached` found some
  2    wrong usage, or a payload that is refused
  3    the run was cancelled or skipped; a question was answered no; `plan --exit-code` found changes
  4    not found
  5    not allowed
  6    conflict
  69   the database or the server cannot be reached, or the port is taken
  75   the run is still running after --timeout
  78   bad configuration; tables that need `rota migrate`, or that were promoted to elsewhere
  130  interrupted; a run that was waited for goes on
  141  nobody reads on what `rota run watch` prints"""


@click.group(
    "rota",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "rota init                                 a small application to begin with: jobs.py",
        "rota dev                                  an example, its worker and its page in one process",
        "rota worker jobs:app                      run the jobs that jobs.py declares on `app`",
        'rota run add crawl \'{"url": "…"}\' --wait  enqueue a run and wait for its end',
        "rota run ls --state failed                what went wrong",
    )
    + "\n\n"
    + EXIT_CODES,
)
@click.version_option(__version__, prog_name="rota", message="%(prog)s %(version)s")
@click.option("--server", metavar="URL", help="Ask this server instead of a database.  [env: ROTA_SERVER]")
@click.option(
    "--token", metavar="TOKEN", help="To be let in there; others see it in lists of processes.  [env: ROTA_TOKEN]"
)
def root(server: str | None, token: str | None) -> None:
    """Run jobs on time, and know what happened.

    The database is --database, else ROTA_DATABASE_URL, else rota.toml, else sqlite:///rota.db.
    Every command takes --json.
    """


for command in (
    init,
    dev,
    server,
    worker,
    top,
    migrate,
    promote,
    run,
    schedule,
    job,
    queue,
    quota,
    workers,
    token,
    expect,
    errors,
    notify,
    explain,
    audit,
    cron,
    import_group,
    export,
    prune,
    doctor,
    completion,
):
    root.add_command(command)
let_complete(root)


def main() -> None:
    root.main()
