"""`rota init`: write a first application and its settings."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from rota.cli.options import examples
from rota.cli.terminal.output import emit, on_terminal, print_json
from rota.errors import Conflict, Invalid

_JOBS = '''"""Jobs and their schedules."""

from rota import Context, Rota, every

app = Rota()  # settings, such as its database, are in rota.toml


# Any function can be a job. Its arguments are the payload of a run, and are validated when it is enqueued.
# A run of this job has up to three attempts, ten seconds apart, each of at most a minute.
@app.job(max_attempts=3, backoff="10s", timeout="1m")
async def greet(ctx: Context, name: str = "world") -> str:
    """Greet somebody."""
    ctx.log.info("greeting %s", name)  # stored with the run: rota run logs
    return f"Hello, {name}!"  # stored as its result: rota run get


# One run a minute, however many workers there are.
# For times of day, use a trigger such as cron("0 9 * * MON-FRI", "Europe/Berlin").
app.schedule("greet-every-minute", greet, every("1m"), payload={"name": "you"})
'''

_SETTINGS = """\
# Settings of every command in this folder. Environment variables (ROTA_DATABASE_URL) and flags override them.

# An SQLite file is enough for one machine. For several: "postgresql://user@host/database".
database_url = "sqlite:///rota.db"

# How many runs a worker executes at once.
concurrency = 10

# How long runs may take to finish when their worker stops.
shutdown_grace = "20s"
"""

_FILES = {"jobs.py": _JOBS, "rota.toml": _SETTINGS}
_NEXT = (
    ("rota dev jobs:app", "run it, with a dashboard"),
    ('rota run enqueue greet \'{"name": "Ada"}\' --wait', "in a second terminal: enqueue a run, wait for its result"),
    ("rota run list", "list runs"),
    ("rota schedule list", "list schedules and their next runs"),
)


@click.command("init", epilog=examples("rota init", "rota init shop    in a new folder"))
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def init(folder: Path, as_json: bool) -> None:
    """Write a first application and its settings.

    The files are jobs.py and rota.toml. Nothing is overwritten: if one of the files exists, neither is written.
    """
    written = _write(folder)
    steps = [*([(f"cd {quote(str(folder))}", "")] if folder != Path() else []), *_NEXT]
    if as_json:
        print_json({"written": [str(path) for path in written], "next": [command for command, _ in steps]})
    elif on_terminal():
        width = max(len(command) for command, _ in steps)
        lines = [f"  {command.ljust(width)}  {what}".rstrip() for command, what in steps]
        emit("\n".join([f"wrote {' and '.join(map(str, written))}; next:", *lines]))
    else:
        emit("\n".join(map(str, written)))


def _write(folder: Path) -> list[Path]:
    paths = [folder / name for name in _FILES]
    existing = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if existing:
        raise Conflict(f"{' and '.join(existing)} would be overwritten", hint="choose another folder: rota init DIR")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            with path.open("x", encoding="utf-8") as file:
                file.write(_FILES[path.name])
    except OSError as error:
        raise Invalid(
            f"{error.filename or folder}: {error.strerror}", hint="choose a folder that you may write to"
        ) from error
    return paths
