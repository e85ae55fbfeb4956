"""`rota import`: convert files of other schedulers for `rota schedule apply`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from rota.cli.options import examples, shared
from rota.cli.schedules.files import apply_file, file_owner, read_text, require_deletions
from rota.cli.terminal.confirm import yes_option
from rota.cli.terminal.format import visible
from rota.cli.terminal.output import emit, print_json
from rota.core.formats.crontab import Unconverted, read_crontab
from rota.core.formats.interval_jobs import read_intervals
from rota.core.formats.toml import schedules_toml
from rota.errors import Invalid, UnknownJob

_owner = click.option("--owner", metavar="NAME", help="Owner of the schedules.  [default: file:NAME]")
_apply = click.option("--apply", "applying", is_flag=True, help="Apply the schedules instead of printing them.")
_UNZONED = "times are read as UTC, but cron uses the machine's time zone: set it with --tz"


@click.group(
    "import",
    epilog=examples("rota import crontab old.cron > schedules.toml", "rota import intervals jobs.json --apply"),
)
def import_group() -> None:
    """Import schedules from crontabs and lists of interval jobs.

    They are printed as a file for `rota schedule apply`, or applied at once.
    """


@import_group.command(
    epilog=examples(
        "crontab -l | rota import crontab - --owner crontab > schedules.toml",
        "rota import crontab /etc/crontab --system --as-every",
        "rota import crontab old.cron --tz Europe/Berlin --job run_command --apply",
    )
)
@click.argument("file", metavar="FILE | -")
@click.option("--job", default="run_command", show_default=True, metavar="NAME", help="The job that runs commands.")
@click.option(
    "--tz", "--timezone", "zone", metavar="ZONE", help="Time zone of entries without CRON_TZ or TZ.  [default: UTC]"
)
@click.option("--system", is_flag=True, help="Entries have a column for the user, as in /etc/crontab.")
@click.option("--as-every", is_flag=True, help="Use intervals instead of cron where they are equivalent.")
@_owner
@_apply
@yes_option
@shared
def crontab(file: str, job: str, zone: str | None, system: bool, as_every: bool, **options: Any) -> int:
    """Convert a crontab to schedules.

    Each entry becomes a schedule of --job with the payload {"command": …, "environment": {…}}; text after a % becomes
    "stdin". Comments above an entry become its description, CRON_TZ and TZ above it set its zone. Lines that cannot be
    converted are listed on stderr; with --apply the exit code is then 1.
    """
    crontab_schedules = read_crontab(read_text(file), job=job, zone=zone or "UTC", system=system, as_every=as_every)
    remarks = [_UNZONED] if crontab_schedules.unzoned and zone is None else []
    return _Import(crontab_schedules.documents, "line", crontab_schedules.unconverted, remarks).give(file, **options)


@import_group.command(
    epilog=examples("rota import intervals jobs.json --job crawl", "rota import intervals jobs.json --apply --json")
)
@click.argument("file", metavar="FILE | -")
@click.option("--job", default="crawl", show_default=True, metavar="NAME", help="Job of entries that name none.")
@_owner
@_apply
@yes_option
@shared
def intervals(file: str, job: str, **options: Any) -> int:
    """Convert a JSON list of interval jobs to schedules.

    Supported keys: name or source_name, interval_minutes with interval_type (the unit of the number, by default
    minutes; intervals count from 1970, or from anchor), schedule_enabled, max_retries, retry_backoff_seconds,
    metadata, url, source_id and the older schedule_time. With --apply the exit code is 1 if some
    jobs cannot be converted.
    """
    interval_schedules = read_intervals(read_text(file), job=job)
    return _Import(
        interval_schedules.documents, "job", interval_schedules.unconverted, interval_schedules.remarks
    ).give(file, **options)


def _owner_of(file: str, owner: str | None, applying: bool) -> str | None:
    if owner is None and file == "-":
        if applying:
            raise Invalid("schedules from stdin need an owner", hint="give --owner")
        return None
    return owner or file_owner(file)


class _Import(msgspec.Struct, frozen=True):
    """A converted file. `unit` is the word for its entries in messages: line or job."""

    documents: Sequence[dict[str, Any]]
    unit: str
    problems: Sequence[Unconverted]
    remarks: Sequence[str]

    def give(
        self, file: str, *, owner: str | None, applying: bool, yes: bool, database: str | None, as_json: bool
    ) -> int:
        """Print or apply the schedules. Return the exit code: 1 if only some were applied."""
        owned_by = _owner_of(file, owner, applying)
        unconverted = [f"{self.unit} {problem.line}: {problem.text}: {problem.why}" for problem in self.problems]
        if applying or not as_json:
            for remark in (*unconverted, *self.remarks):
                click.echo(f"note: {visible(remark)}", err=True)
        if applying:
            assert owned_by is not None
            self._apply(owned_by, database, asking=owner is None and not yes, as_json=as_json)
        elif as_json:
            facts = {"unconverted": self.problems, "remarks": self.remarks}
            print_json({"owner": owned_by, "schedule": self.documents, **facts})
        else:
            emit(schedules_toml(owned_by, self.documents, unconverted).rstrip("\n"))
        return 1 if applying and self.problems else 0

    def _apply(self, owner: str, database: str | None, *, asking: bool, as_json: bool) -> None:
        try:
            if asking:
                require_deletions(self.documents, owner, database, command="rota import … --apply")
            apply_file(self.documents, owner, database, as_json=as_json)
        except UnknownJob as error:
            error.hint = f"{error.hint}; or give another one with --job"
            raise
