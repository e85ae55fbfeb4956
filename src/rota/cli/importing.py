"""`rota import`: what other schedulers have, as schedules for `rota schedule apply`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from rota.cli.options import examples, shared
from rota.cli.output import emit, print_json
from rota.cli.schedule_files import apply_file, file_owner, read_text
from rota.cli.words import visible
from rota.core.crontab import Unconverted, read_crontab
from rota.core.intervals import read_intervals
from rota.core.tomltext import schedules_toml
from rota.errors import Invalid

_owner = click.option("--owner", metavar="NAME", help="Who the schedules belong to.  [default: file:NAME]")
_apply = click.option("--apply", "applying", is_flag=True, help="Apply them at once, instead of printing them.")


@click.group("import")
def import_group() -> None:
    """Schedules from elsewhere: crontabs, and job lists with intervals.

    They are printed as a file for `rota schedule apply`, or applied at once.
    """


@import_group.command(
    epilog=examples(
        "crontab -l | rota import crontab - --owner crontab > schedules.toml",
        "rota import crontab /etc/crontab --system --as-every",
        "rota import crontab old.cron --job run_command --apply",
    )
)
@click.argument("file", metavar="FILE | -")
@click.option("--job", default="run_command", show_default=True, metavar="NAME", help="The job that runs commands.")
@click.option("--system", is_flag=True, help="With a column for the user, as in /etc/crontab.")
@click.option("--as-every", is_flag=True, help="Intervals instead of cron where they are exactly the same.")
@_owner
@_apply
@shared
def crontab(
    file: str,
    job: str,
    system: bool,
    as_every: bool,
    owner: str | None,
    applying: bool,
    database: str | None,
    as_json: bool,
) -> None:
    """Turn a crontab into schedules.

    Each entry becomes a schedule of --job with the payload {"command": …, "environment": {…}}; what follows a % is
    in "stdin". Comments above an entry describe it, CRON_TZ and TZ set its zone. Lines that cannot be schedules are
    listed on stderr.
    """
    found = read_crontab(read_text(file), job=job, system=system, as_every=as_every)
    problems = [("line", one) for one in found.unconverted]
    _give(found.documents, problems, (), _owner_of(file, owner, applying), database, applying=applying, as_json=as_json)


@import_group.command(
    epilog=examples("rota import intervals jobs.json --job crawl", "rota import intervals jobs.json --apply --json")
)
@click.argument("file", metavar="FILE | -")
@click.option("--job", default="crawl", show_default=True, metavar="NAME", help="Of jobs that name none.")
@_owner
@_apply
@shared
def intervals(file: str, job: str, owner: str | None, applying: bool, database: str | None, as_json: bool) -> None:
    """Turn a JSON list of interval jobs into schedules.

    Known are name or source_name, interval_minutes with interval_type (the number counts the unit), schedule_enabled,
    max_retries, retry_backoff_seconds, metadata, url, source_id and the older schedule_time.
    """
    found = read_intervals(read_text(file), job=job)
    problems = [("job", one) for one in found.unconverted]
    _give(
        found.documents,
        problems,
        found.remarks,
        _owner_of(file, owner, applying),
        database,
        applying=applying,
        as_json=as_json,
    )


def _owner_of(file: str, owner: str | None, applying: bool) -> str | None:
    if owner is None and file == "-":
        if applying:
            raise Invalid("what comes from stdin has no name to own schedules", hint="give --owner")
        return None
    return owner or file_owner(file)


def _give(
    documents: Sequence[dict[str, Any]],
    problems: Sequence[tuple[str, Unconverted]],
    remarks: Sequence[str],
    owner: str | None,
    database: str | None,
    *,
    applying: bool,
    as_json: bool,
) -> None:
    left = [f"{unit} {one.line}: {one.text}: {one.why}" for unit, one in problems]
    for remark in (*left, *remarks):
        if not (as_json and not applying):
            click.echo(f"note: {visible(remark)}", err=True)
    if applying:
        assert owner is not None
        apply_file(documents, owner, database, as_json=as_json)
    elif as_json:
        unconverted = [one for _, one in problems]
        print_json({"owner": owner, "schedule": documents, "unconverted": unconverted, "remarks": remarks})
    else:
        emit(schedules_toml(owner, documents, left).rstrip("\n"))
