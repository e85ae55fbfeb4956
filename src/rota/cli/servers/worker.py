"""`rota worker`: a process that runs jobs, or a supervisor of several."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Coroutine
from typing import Any

import click
import msgspec

from rota.cli.connect import database_shown, require_database
from rota.cli.load_app import full_name, is_module_here, load_app
from rota.cli.options import SHORT_FORMS, concurrency, examples, queues_of, server_options
from rota.cli.terminal.output import print_json
from rota.config import load_config
from rota.engine.observability.logs import log_to_stderr
from rota.process import EndWithin, run_loop

log = logging.getLogger("rota.worker")


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one worker process. The supervisor passes them to its children as flags."""

    target: str | None
    name: str | None
    queues: dict[str, int] | None
    concurrency: int | None
    labels: tuple[str, ...]
    app_version: str | None
    database: str | None
    log_level: str
    log_format: str | None
    metrics_port: int | None
    as_json: bool

    def command(self, number: int) -> list[str]:
        flags = {
            "--name": f"{self.name or socket.gethostname()}-{number}",
            "--queues": ",".join(f"{queue}:{weight}" for queue, weight in (self.queues or {}).items()),
            "--concurrency": self.concurrency,
            "--label": ",".join(self.labels),
            "--app-version": self.app_version,
            "--database": self.database,
            "--log-level": self.log_level,
            "--log-format": self.log_format,
            "--metrics-port": self._port(number),
        }
        set_flags = [f"{flag}={value}" for flag, value in flags.items() if value]
        more = (["--json"] if self.as_json else []) + ([self.target] if self.target else [])
        return [sys.executable, "-m", "rota", "worker", "--with-parent", *set_flags, *more]

    def _port(self, number: int) -> str | None:
        """Return the port of the Nth process: consecutive from the given one; 0 means any free port."""
        return None if self.metrics_port is None else str(self.metrics_port and self.metrics_port + number - 1)


class WorkerCommand(click.Command):
    """`rota worker MODULE` runs jobs; `rota worker list` is `rota workers list`, unless a module has that name."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        workers = _workers(parent)
        if (
            args
            and workers is not None
            and args[0] in (*workers.commands, *SHORT_FORMS)
            and not is_module_here(args[0])
        ):
            return workers.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _workers(parent: click.Context | None) -> click.Group | None:
    """Return `rota workers`, as the program around this command has it."""
    program = parent.command if parent else None
    workers = program.commands.get("workers") if isinstance(program, click.Group) else None
    return workers if isinstance(workers, click.Group) else None


@click.command(
    cls=WorkerCommand,
    epilog=examples(
        "rota worker jobs:app",
        "rota worker jobs:app --queues mail,default --concurrency 50",
        "rota worker jobs:app --queues critical:4,default:1",
        "rota worker jobs:app --processes 4 --name crawler",
        "rota worker jobs:app --label gpu --label zone=eu --app-version 1.4",
        "rota worker jobs:app --metrics-port 9200 --log-format json",
        "rota worker --database postgresql://rota@db/rota",
    ),
)
@click.argument("target", metavar="[MODULE[:APP]]", required=False)
@click.option(
    "--queues",
    type=queues_of,
    metavar="A:3,B",
    help="Claim only from these queues; a weight follows the colon.  [default: those of the app's jobs]",
)
@concurrency
@click.option(
    "--processes",
    type=click.IntRange(1, 1000),
    default=1,
    metavar="N",
    help="Start N worker processes and restart those that fail; each has --concurrency.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Capability of this worker, for jobs that require it: gpu, zone=eu. Repeatable.",
)
@click.option("--app-version", metavar="VERSION", help="Version of your application, for jobs that require one.")
@click.option("--name", metavar="NAME", help="Name of the worker.  [default: the host's name]")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Serve /metrics, /healthz and /readyz on this port; further processes use the next ports.",
)
@click.option("--with-parent", is_flag=True, hidden=True)
@server_options
def worker(processes: int, with_parent: bool, **values: Any) -> int:
    """Run a worker for the jobs of an app. `rota worker list`, `drain`, … are those of `rota workers`.

    MODULE is a Python module, APP a variable in it, by default `app`. SIGTERM, Ctrl-C and `rota workers stop` stop the
    worker after its current runs; a second signal stops it at once.

    Without MODULE, it runs jobs that need no code, from the queue `default` or those of --queues: HTTP requests, and
    commands if ROTA_ENABLE_COMMAND=1.
    """
    options = WorkerOptions(**values)
    require_database(options.database)
    log_to_stderr(options.log_level, load_config({"log_format": options.log_format}).log_format)
    if processes > 1:
        from rota.cli.servers.supervisor import supervise

        return asyncio.run(supervise([options.command(number) for number in range(1, processes + 1)]))
    if with_parent:
        from rota.cli.servers.supervisor import stop_when_orphaned

        stop_when_orphaned()
    return work(options)


def _what(target: str | None) -> str:
    return "jobs without code" if target is None else full_name(target)


def work(options: WorkerOptions) -> int:
    from rota.app import Rota
    from rota.server import serve

    app = load_app(options.target) if options.target else Rota()
    labels = ",".join(options.labels) or None
    app.configure(
        database_url=options.database,
        concurrency=options.concurrency,
        worker_labels=labels,
        worker_version=options.app_version,
    )

    def ready(url: str) -> None:
        name, jobs = options.name or socket.gethostname(), sorted(app.registry.known())
        log.info("the database is %s", database_shown(app.config.database_url))
        log.info("worker %s runs %s: %s", name, _what(options.target), ", ".join(jobs) or "no jobs are declared")
        if url:
            log.info("metrics are at %s/metrics", url)
        if options.as_json:
            print_json({"worker": name, "jobs": jobs} | ({"metrics": f"{url}/metrics"} if url else {}))

    def main(end_within: EndWithin) -> Coroutine[Any, Any, int]:
        return serve(
            app,
            http=False,
            metrics_port=options.metrics_port,
            name=options.name,
            queues=options.queues,
            on_ready=ready,
            on_signal=end_within,
        )

    return run_loop(main)
