"""Sources of `rota import`: files, folders, modules of the user, and tables of other programs' databases."""

from __future__ import annotations

import asyncio
import inspect
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rota.cli.load_app import load_module
from rota.cli.schedules.files import read_text
from rota.core.formats.imported import Imported
from rota.core.formats.task_queues.celery_beat import PREFIX, TABLES, beat_tables, read_beat_schedule, read_beat_tables
from rota.core.formats.task_queues.tasks import Task, Tasks
from rota.errors import Invalid
from rota.store import dialect_of, file_of
from rota.store.databases.foreign_tables import Rows, read_file, read_server
from rota.store.databases.statements import SQLITE

_FORMS = "MODULE[:NAME], a .py or .json file, or the URL of a database"
_NAMES = ("CELERY_BEAT_SCHEDULE", "beat_schedule")
_ZONES = ("CELERY_TIMEZONE", "timezone", "TIME_ZONE")
_APPS = ("app", "celery", "celery_app")


def is_database(source: str) -> bool:
    return "://" in source


def tables(url: str, names: Sequence[str]) -> dict[str, Rows]:
    """Return the rows of tables of a database. The scheme may name a driver, as SQLAlchemy's and Django's do."""
    plain = re.sub(r"^(\w+)\+\w+://", r"\1://", url)
    if dialect_of(plain) is SQLITE:
        return read_file(file_of(plain), names)
    return asyncio.run(read_server(plain, names))


def celery(source: str, named: Mapping[str, Task], zone: str | None) -> Imported:
    """Convert what Celery beat reads: a module or file of settings, an app, a dump, or django-celery-beat's tables."""
    if is_database(source):
        rows = tables(source, [f"{PREFIX}_{table}" for table in TABLES])
        return read_beat_tables({table: rows[f"{PREFIX}_{table}"] for table in TABLES}, Tasks(named))
    if source == "-" or source.endswith(".json"):
        return read_beat_tables(beat_tables(read_text(source)), Tasks(named))
    app, settings = _settings(source)
    schedule = next((settings[name] for name in _NAMES if settings.get(name) is not None), None)
    if schedule is None:
        raise Invalid(f"{source} has no beat_schedule", hint=f"name {_FORMS}")
    found_zone = next((settings[name] for name in _ZONES if settings.get(name)), "UTC")
    return read_beat_schedule(schedule, Tasks(named, _parameters_of(app)), zone or str(found_zone))


def _settings(source: str) -> tuple[Any, Mapping[str, Any]]:
    """Return a Celery app, or None, and its settings. The module is run, as `celery --app` does."""
    if source.endswith(".py"):
        read_text(source)  # with an error that says why it cannot be read
        sys.path.insert(0, str(Path(source).resolve().parent))
        try:
            found: Any = SimpleNamespace(**runpy.run_path(source))
        except Exception as error:
            raise Invalid(f"{source} cannot be run: {type(error).__name__}: {error}") from error
    else:
        module, _, path = source.partition(":")
        found = load_module(module)
        for name in filter(None, path.split(".")):
            if not hasattr(found, name):
                raise Invalid(f"module {module!r} has no {path!r}", hint=f"name {_FORMS}")
            found = getattr(found, name)
    if hasattr(found, "conf"):
        return found, _of_app(found)
    if isinstance(found, Mapping):
        return None, {"beat_schedule": found}
    space = vars(found)
    app = next((space[name] for name in _APPS if hasattr(space.get(name), "conf")), None)
    return app, space if app is None else _of_app(app)


def _of_app(app: Any) -> Mapping[str, Any]:
    return {"beat_schedule": app.conf.beat_schedule, "timezone": app.conf.timezone}


def _parameters_of(app: Any) -> Callable[[str], Sequence[str] | None]:
    def known(task: str) -> Sequence[str] | None:
        found = getattr(app, "tasks", {}).get(task)
        if found is None:
            return None
        parameters = inspect.signature(found.run).parameters.values()
        return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]

    return known


def yaml_documents(file: str) -> list[Any]:
    """Return the documents of a YAML file, which may be JSON."""
    try:
        import yaml
    except ModuleNotFoundError:
        raise Invalid("reading YAML needs PyYAML", hint='pip install "rota[yaml]"') from None
    try:
        return list(yaml.safe_load_all(read_text(file)))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Invalid(f"{file} is no YAML: {' '.join(str(error).split())[:200]}") from None


def files_of(sources: Sequence[str], suffixes: Sequence[str]) -> Iterator[Path]:
    """Return the files that are named, and those of folders that are named, by suffix."""
    for source in sources:
        path = Path(source)
        found = sorted(each for each in path.iterdir() if each.suffix in suffixes) if path.is_dir() else [path]
        if not found:
            raise Invalid(f"the folder {source} has no file that ends in {' or '.join(suffixes)}")
        yield from found


def unit_files(sources: Sequence[str]) -> dict[str, str]:
    """Return the texts of unit files by name, with the services beside timers."""
    texts: dict[str, str] = {}
    for path in files_of(sources, (".timer",)):
        texts[path.name] = read_text(str(path))
        for service in sorted(path.parent.glob("*.service")):
            texts.setdefault(service.name, read_text(str(service)))
    return texts
