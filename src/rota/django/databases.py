"""Choose rota's database in a Django project: Django's own PostgreSQL, or a file beside its SQLite file."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections

ALIAS = DEFAULT_DB_ALIAS
# Those of Django's libpq options that asyncpg understands as well.
_PASSED_ON = ("sslmode", "sslrootcert", "sslcert", "sslkey", "passfile", "service", "target_session_attrs")


def database_url() -> str:
    """Return a URL for `DATABASES["default"]` as it is now: while tests run, Django changes the name there."""
    vendor = connections[ALIAS].vendor
    settings = connections.settings[ALIAS]
    if vendor == "postgresql":
        return _postgres(settings)
    if vendor == "sqlite":
        return f"sqlite:///{quote(str(_beside(str(settings['NAME']))))}"
    raise ImproperlyConfigured(
        f'rota keeps its runs in PostgreSQL or SQLite, and DATABASES["{ALIAS}"] is {vendor}: '
        'name one of them in settings.py, ROTA = {"database_url": "…"}'
    )


def _postgres(settings: dict[str, Any]) -> str:
    options = settings.get("OPTIONS", {})
    query = {name: str(options[name]) for name in _PASSED_ON if options.get(name)}
    host, port = settings.get("HOST") or "", str(settings.get("PORT") or "")
    if host.startswith("/"):  # a folder with the server's socket
        query["host"] = host
        host = ""
    user, password = quote(settings.get("USER") or "", safe=""), quote(settings.get("PASSWORD") or "", safe="")
    who = f"{user}:{password}@" if password else f"{user}@" if user else ""
    where = f"[{host}]" if ":" in host else host
    if port and not where:
        query["port"] = port
    elif port:
        where = f"{where}:{port}"
    name = quote(settings.get("NAME") or "", safe="")
    return f"postgresql://{who}{where}/{name}" + (f"?{urlencode(query)}" if query else "")


def _beside(name: str) -> Path:
    """Return the path of rota's own file.

    Django opens its file with Python's SQLite library, rota with another. Two libraries in one process undo each
    other's locks: closing a file gives up all POSIX locks that the process has on it.
    """
    if name == ":memory:" or "mode=memory" in name:
        return _folder(os.getpid()) / "rota.db"
    path = Path(name).absolute()
    return path.with_name(f"rota-{path.name}")


def remove_beside(name: str) -> None:
    """Delete rota's file if Django's is gone, so that runs of one test session do not reach the next."""
    if not Path(name).exists():
        for end in ("", "-wal", "-shm"):
            Path(f"{_beside(name)}{end}").unlink(missing_ok=True)


@cache
def _folder(pid: int) -> Path:
    """Return a temporary folder for tests whose database is in memory, one for each process."""
    folder = Path(tempfile.mkdtemp(prefix="rota-django-"))
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == pid else None)
    return folder
