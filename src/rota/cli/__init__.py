"""The command line: parse, call the client, print."""

from __future__ import annotations

import click

from rota.cli.command_table import CommandTable
from rota.cli.options import examples
from rota.cli.program import Program
from rota.version import __version__

__all__ = ["main", "root"]

EXIT_CODES = """\b
Exit codes:
  0    ok
  1    the run failed, timed out or expired; another error; `expectation list --breached` found a breach
  2    wrong usage, or an invalid payload
  3    the run was cancelled or skipped; a question was answered with no; `plan --exit-code` found changes
  4    not found
  5    not allowed
  6    conflict
  69   the database or the server cannot be reached, or the port is taken
  75   the run has not ended after --timeout
  78   bad configuration; the tables need `rota migrate`, or were promoted to another database
  130  interrupted; the run that was waited for continues
  141  the reader of `rota run watch` has gone"""


@click.group(
    "rota",
    cls=Program,
    commands=CommandTable(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "rota init                                      write a first application, jobs.py",
        "rota dev                                       server, dashboard and worker with an example",
        "rota worker jobs:app                           run the jobs of `app` in jobs.py",
        'rota run enqueue crawl \'{"url": "…"}\' --wait   enqueue a run and wait for its end',
        "rota run list --state failed                   list the runs that failed",
    )
    + "\n\n"
    + EXIT_CODES
    + "\n\nWords of other schedulers: docs/coming-from/vocabularies.md",
)
@click.version_option(__version__, prog_name="rota", message="%(prog)s %(version)s")
@click.option("--server", metavar="URL", help="Use this server instead of a database.  [env: ROTA_SERVER]")
@click.option(
    "--token", metavar="TOKEN", help="API token. Visible in the process list; prefer ROTA_TOKEN.  [env: ROTA_TOKEN]"
)
def root(server: str | None, token: str | None) -> None:
    """Run jobs on time, and know what happened.

    The database is --database, else ROTA_DATABASE_URL, else rota.toml, else sqlite:///rota.db.
    Every command takes --json.
    """


def main() -> None:
    root.main()
