"""`rota import`: convert files of other schedulers for `rota schedule apply`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from rota.cli.options import examples, shared
from rota.cli.schedules.files import apply_file, file_owner, read_text, require_deletions
from rota.cli.terminal.confirm import yes_option
from rota.cli.terminal.format import visible
from rota.cli.terminal.output import emit, print_json
from rota.core.formats.imported import Imported
from rota.core.formats.toml import schedules_toml
from rota.errors import Invalid, UnknownJob

F = TypeVar("F", bound=Callable[..., Any])

_owner = click.option("--owner", metavar="NAME", help="Owner of the schedules.  [default: file:NAME]")
_apply = click.option("--apply", "applying", is_flag=True, help="Apply the schedules instead of printing them.")
_task = click.option(
    "--task", "tasks", multiple=True, metavar="TASK=JOB(PARAMETERS)",
    help="Job of a task, and names of the arguments that it is given by position.  [repeatable]",
)  # fmt: skip
_job = click.option(
    "--job", default="run_command", show_default=True, metavar="NAME", help="The job that runs commands."
)


def _zone(without: str) -> Callable[[F], F]:
    return click.option("--tz", "--timezone", "zone", metavar="ZONE", help=f"Time zone of {without}.  [default: UTC]")


@click.group(
    "import",
    epilog=examples(
        "rota import crontab old.cron > schedules.toml",
        "rota import celery shop.celery:app",
        "rota import kubernetes cronjobs.yaml --apply",
    ),
)
def import_group() -> None:
    """Import schedules of other schedulers.

    They are printed as a file for `rota schedule apply`, or applied at once. What cannot be imported is listed with the
    reason.
    """


@import_group.command(
    epilog=examples(
        "crontab -l | rota import crontab - --owner crontab > schedules.toml",
        "rota import crontab /etc/crontab --system --as-every",
        "rota import crontab old.cron --tz Europe/Berlin --job run_command --apply",
    )
)
@click.argument("file", metavar="FILE | -")
@_job
@_zone("entries without CRON_TZ or TZ")
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
    from rota.core.formats.crontab import read_crontab

    imported = read_crontab(read_text(file), job=job, zone=zone, system=system, as_every=as_every)
    return _Import(imported, "line").give(file, **options)


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
    from rota.core.formats.interval_jobs import read_intervals

    return _Import(read_intervals(read_text(file), job=job), "job").give(file, **options)


@import_group.command(
    epilog=examples(
        "rota import celery shop.celery:app",
        "rota import celery settings.py --task 'shop.bill=bill(who, amount)'",
        "python manage.py dumpdata django_celery_beat | rota import celery -",
        "rota import celery postgresql://shop@db/shop --apply",
    )
)
@click.argument("source", metavar="MODULE[:NAME] | FILE | URL | -")
@_task
@click.option("--tz", "--timezone", "zone", metavar="ZONE", help="Time zone instead of the app's.")
@_owner
@_apply
@yes_option
@shared
def celery(source: str, tasks: tuple[str, ...], zone: str | None, **options: Any) -> int:
    """Convert the schedules of Celery beat.

    SOURCE is a module or .py file with an app, a beat_schedule or CELERY_BEAT_SCHEDULE, which is run; a .json file that
    `dumpdata django_celery_beat` wrote; or the URL of the database with django-celery-beat's tables. A task becomes the
    job of its function's name, or of --task. With --apply the exit code is 1 if some cannot be converted.
    """
    from rota.cli.schedules import import_sources
    from rota.core.formats.task_queues.tasks import tasks_of

    return _Import(import_sources.celery(source, tasks_of(tasks), zone), "task").give(source, **options)


@import_group.command(
    epilog=examples(
        "rota import apscheduler sqlite:///jobs.sqlite",
        "rota import apscheduler postgresql://shop@db/shop --task 'shop:bill=bill(who)' --apply",
    )
)
@click.argument("url", metavar="URL")
@click.option("--table", default="apscheduler_jobs", show_default=True, metavar="NAME", help="Table of the job store.")
@_task
@_owner
@_apply
@yes_option
@shared
def apscheduler(url: str, table: str, tasks: tuple[str, ...], **options: Any) -> int:
    """Convert the jobs of APScheduler 3.

    URL is that of the database of an SQLAlchemyJobStore. Its pickles are parsed without importing or calling anything:
    a job with arguments other than JSON values is listed, and not converted. With --apply the exit code is then 1.
    """
    from rota.cli.schedules import import_sources
    from rota.core.formats.task_queues.apscheduler import read_job_store
    from rota.core.formats.task_queues.tasks import Tasks, tasks_of

    if not import_sources.is_database(url):
        raise Invalid(f"{visible(url)} is no URL", hint="sqlite:///jobs.sqlite or postgresql://…")
    rows = import_sources.tables(url, [table])[table]
    return _Import(read_job_store(rows, Tasks(tasks_of(tasks))), "job").give(url, **options)


@import_group.command(
    epilog=examples(
        "rota import rq redis://localhost:6379/0",
        "rota import rq jobs.json --tz Europe/Berlin --task 'shop.bill=bill(who)' --apply",
    )
)
@click.argument("source", metavar="URL | FILE | -")
@_task
@_zone("cron jobs, which is that of the machine on which rq-scheduler runs")
@_owner
@_apply
@yes_option
@shared
def rq(source: str, tasks: tuple[str, ...], zone: str | None, **options: Any) -> int:
    """Convert the jobs of rq-scheduler.

    SOURCE is the URL of its Redis, which is only read, or a JSON list of the jobs, as docs/coming-from/rq-scheduler.md
    writes it. Pickles are parsed without importing or calling anything: a job with arguments other than JSON values is
    listed, and not converted. With --apply the exit code is then 1.
    """
    from rota.cli.schedules.import_redis import rq_hashes
    from rota.cli.schedules.import_sources import is_database
    from rota.core.formats.task_queues.rq_jobs import read_rq_jobs, rq_list
    from rota.core.formats.task_queues.tasks import Tasks, tasks_of

    jobs = rq_hashes(source) if is_database(source) else rq_list(read_text(source))
    return _Import(read_rq_jobs(jobs, Tasks(tasks_of(tasks)), zone), "job").give(source, **options)


@import_group.command(
    epilog=examples(
        "kubectl get cronjobs -A -o yaml | rota import kubernetes -", "rota import kubernetes cronjobs.yaml --apply"
    )
)
@click.argument("file", metavar="FILE | -")
@_job
@_owner
@_apply
@yes_option
@shared
def kubernetes(file: str, job: str, **options: Any) -> int:
    """Convert the CronJobs of Kubernetes.

    FILE is YAML with CronJobs or lists of them. Each becomes a schedule of --job with the command of its container; the
    worker must run in its image. With --apply the exit code is 1 if some cannot be converted.
    """
    from rota.cli.schedules.import_sources import yaml_documents
    from rota.core.formats.cron_jobs import read_cron_jobs

    return _Import(read_cron_jobs(yaml_documents(file), job), "CronJob").give(file, **options)


@import_group.command(
    epilog=examples("rota import github .github/workflows", "rota import github nightly.yml --owner nightly --apply")
)
@click.argument("sources", nargs=-1, required=True, metavar="FILE|FOLDER…")
@_job
@_owner
@_apply
@yes_option
@shared
def github(sources: tuple[str, ...], job: str, **options: Any) -> int:
    """Convert the schedules of GitHub Actions.

    Each cron expression of a workflow's on.schedule becomes a schedule of --job with the commands of its steps.
    Workflows of several jobs, and steps that use actions other than checkout, are listed, and not converted; with
    --apply the exit code is then 1.
    """
    from rota.cli.schedules.import_sources import files_of, yaml_documents
    from rota.core.formats.github_workflows import read_workflows

    workflows = [
        (path.stem, document) for path in files_of(sources, (".yml", ".yaml")) for document in yaml_documents(str(path))
    ]
    return _Import(read_workflows(workflows, job), "workflow").give(sources[0], **options)


@import_group.command(
    epilog=examples(
        "rota import systemd /etc/systemd/system --tz Europe/Berlin", "rota import systemd backup.timer --apply"
    )
)
@click.argument("sources", nargs=-1, required=True, metavar="FILE|FOLDER…")
@_job
@_zone("timers that name none")
@_owner
@_apply
@yes_option
@shared
def systemd(sources: tuple[str, ...], job: str, zone: str | None, **options: Any) -> int:
    """Convert timers of systemd.

    Each timer, with the service of its name beside it, becomes a schedule of --job with the command of ExecStart. What
    only systemd does, such as variables and ExecStartPre, is listed, and not converted; with --apply the exit code is
    then 1.
    """
    from rota.cli.schedules.import_sources import unit_files
    from rota.core.formats.systemd_timers import read_timers

    return _Import(read_timers(unit_files(sources).items(), job, zone), "timer").give(sources[0], **options)


def _owner_of(file: str, owner: str | None, applying: bool) -> str | None:
    if owner is None and file == "-":
        if applying:
            raise Invalid("schedules from stdin need an owner", hint="give --owner")
        return None
    # No module's name, and no URL, which may contain a password.
    return owner or (click.get_current_context().command.name if not Path(file).exists() else file_owner(file))


class _Import(msgspec.Struct, frozen=True):
    """A converted source. `unit` is the word for its entries in messages: line or job."""

    imported: Imported
    unit: str

    def give(
        self, file: str, *, owner: str | None, applying: bool, yes: bool, database: str | None, as_json: bool
    ) -> int:
        """Print or apply the schedules. Return the exit code: 1 if only some were applied."""
        owned_by = _owner_of(file, owner, applying)
        unconverted = [
            f"{self.unit} {problem.line}: {problem.text}: {problem.why}" for problem in self.imported.unconverted
        ]
        if applying or not as_json:
            for remark in (*unconverted, *self.imported.remarks):
                click.echo(f"note: {visible(remark)}", err=True)
        if applying:
            assert owned_by is not None
            self._apply(owned_by, database, asking=owner is None and not yes, as_json=as_json)
        elif as_json:
            facts = {"unconverted": self.imported.unconverted, "remarks": self.imported.remarks}
            print_json({"owner": owned_by, "schedule": self.imported.documents, **facts})
        else:
            emit(schedules_toml(owned_by, self.imported.documents, unconverted).rstrip("\n"))
        return 1 if applying and self.imported.unconverted else 0

    def _apply(self, owner: str, database: str | None, *, asking: bool, as_json: bool) -> None:
        try:
            if asking:
                require_deletions(self.imported.documents, owner, database, command="rota import … --apply")
            apply_file(self.imported.documents, owner, database, as_json=as_json)
        except UnknownJob as error:
            error.hint = f"{error.hint}; or give another one with --job"
            raise
