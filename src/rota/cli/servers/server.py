"""`rota dev` and `rota server`: the commands that serve HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from rota.app import Rota
from rota.cli.connect import database_shown, require_database
from rota.cli.load_app import is_module_here, load_app
from rota.cli.options import concurrency, examples, server_options
from rota.cli.terminal.output import emit, print_json
from rota.config import load_config
from rota.engine.observability.logs import log_to_stderr
from rota.process import EndWithin, run_loop

_host = click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
_base_path = click.option("--base-path", metavar="PATH", help="Path at which a proxy serves it: /rota.")
_port = click.option(
    "--port", type=int, metavar="PORT", help="Port to listen on; 0 means any free port.  [default: 7682]"
)

log = logging.getLogger("rota.server")


@click.command(
    epilog=examples("rota dev", "rota dev jobs:app --port 8000", "rota dev --database sqlite:///elsewhere.db")
)
@click.argument("target", metavar="[MODULE[:APP]]", required=False)
@_host
@_port
@_base_path
@concurrency
@server_options
def dev(target: str | None, database: str | None, log_level: str, as_json: bool, **settings: Any) -> int:
    """Run the server, its dashboard and a worker in one process.

    Meant for development. Without MODULE it runs an example application.
    """
    require_database(database)
    settings["database_url"] = database
    log_to_stderr(log_level, load_config({"log_format": settings["log_format"]}).log_format)
    if target is None and is_module_here("jobs"):
        click.echo("note: this is the example application; `rota dev jobs:app` runs jobs.py", err=True)
    app = _configured(target, settings) if target else _example(settings)
    return run_loop(lambda end_within: _develop(app, end_within, seeding=target is None, as_json=as_json))


async def _develop(app: Rota, end_within: EndWithin, *, seeding: bool, as_json: bool) -> int:
    from rota.server import serve

    tasks: list[asyncio.Task[None]] = []

    def ready(url: str) -> None:
        announce(app, url, as_json=as_json)
        if seeding:
            tasks.append(asyncio.create_task(_seed(app)))

    return await serve(app, on_ready=ready, on_signal=end_within)


def _example(settings: dict[str, Any]) -> Rota:
    from rota.cli.servers.example_app import make

    return make(load_config(settings))


async def _seed(app: Rota) -> None:
    from rota.cli.servers.example_app import seed

    await seed(await app.connect())


@click.command(epilog=examples("rota server --port 8000", "rota server jobs:app --database postgresql://rota@db/rota"))
@click.argument("target", metavar="[MODULE[:APP]]", required=False)
@_host
@_port
@_base_path
@server_options
def server(target: str | None, database: str | None, log_level: str, as_json: bool, **settings: Any) -> int:
    """Run the API and the dashboard, without a worker.

    It also runs the background loops: the planner (creates the runs of schedules), the promoter (queues runs when they
    are due), the reaper (takes runs away from workers that died) and the janitor (deletes old runs). Workers run them,
    too.

    With MODULE, the jobs and schedules of its app are registered.
    """
    from rota.server import serve

    require_database(database)
    settings["database_url"] = database
    log_to_stderr(log_level, load_config({"log_format": settings["log_format"]}).log_format)
    app = _configured(target, settings) if target else Rota(config=load_config(settings))

    def ready(url: str) -> None:
        if as_json:
            print_json({"url": url, "database": database_shown(app.config.database_url)})
        else:
            emit(url)
            log.info("the database is %s", database_shown(app.config.database_url))

    return run_loop(lambda end_within: serve(app, working=False, on_ready=ready, on_signal=end_within))


def _configured(target: str, settings: dict[str, Any]) -> Rota:
    app = load_app(target)
    app.configure(**settings)
    return app


def announce(app: Rota, url: str, *, as_json: bool) -> None:
    """Print the URL of the dashboard, and commands to try next."""
    database = database_shown(app.config.database_url)
    if as_json:
        print_json({"url": url, "database": database})
        return
    first, *more = _next_commands(app, database)
    lines = [f"dashboard  {url}", f"database   {database}", f"next       {first}"]
    emit("\n".join([*lines, *(f"           {command}" for command in more), "Ctrl-C stops it."]))


def _next_commands(app: Rota, database: str) -> list[str]:
    """Return commands that work as they are in another terminal: a job is enqueued only if it needs no payload."""
    requirements = {job.name: bool(job.payload_schema.get("required")) for job in app.registry.definitions()}
    job = min(requirements, key=lambda name: requirements[name], default=None)
    first = "queue list" if job is None else f"job get {job}" if requirements[job] else f"run enqueue {job} --wait"
    is_default = load_config().database_url == app.config.database_url
    where = "" if is_default else f" --database {shlex.quote(database)}"
    rota = shlex.quote(program())
    return [f"{rota} {command}{where}" for command in (first, "run list", "job list", "schedule list")]


def program() -> str:
    """Return what to type for `rota`: its path if it is not on PATH."""
    own = Path(sys.executable).with_name("rota")
    if shutil.which("rota") or not own.exists():
        return "rota"
    here = os.path.relpath(own)
    return min(here if os.sep in here else os.path.join(os.curdir, here), str(own), key=len)
