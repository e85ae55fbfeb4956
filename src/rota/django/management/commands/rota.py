"""`manage.py rota …`: every rota command, for the project's app and database, after Django's setup."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

_OF_AN_APP = ("worker", "server", "dev")
_TARGET = "rota.django:app"
_DATABASE = "ROTA_DATABASE_URL"


class Command(BaseCommand):
    help = "Any command of rota: `manage.py rota worker`, `manage.py rota run ls`, `manage.py rota --help`."
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass all arguments to rota, `--help` included; only `--settings` and `--pythonpath` are Django's."""
        djangos = CommandParser(prog=f"{argv[0]} {argv[1]}", add_help=False, allow_abbrev=False)
        djangos.add_argument("--settings")
        djangos.add_argument("--pythonpath")
        _, words = djangos.parse_known_args(argv[2:])
        try:
            run_command(words, f"{os.path.basename(argv[0])} {argv[1]}")
        finally:
            connections.close_all()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("words", nargs=argparse.REMAINDER)

    def handle(self, *args: Any, words: Sequence[str], **options: Any) -> None:
        """Run a command for `call_command("rota", "prune")`."""
        try:
            run_command([*args, *words], "rota")
        except SystemExit as ended:
            if ended.code:
                code = ended.code if isinstance(ended.code, int) else 1
                raise CommandError(f"rota ended with {code}", returncode=code) from None


def run_command(words: Sequence[str], program: str) -> None:
    """Run a rota command; it ends the process by raising `SystemExit`."""
    from rota.cli import root
    from rota.django.application import DjangoRota, the_app

    app = the_app()
    if isinstance(app, DjangoRota):
        app.follow()
    command, rest = (words[0], words[1:]) if words else (None, [])
    with _database_named(app.config.database_url):
        root.main([command, _TARGET, *rest] if command in _OF_AN_APP else list(words), prog_name=program)


@contextmanager
def _database_named(url: str) -> Iterator[None]:
    """Set ROTA_DATABASE_URL for commands that use no app. A flag would be visible in the process list."""
    before = os.environ.get(_DATABASE)
    os.environ[_DATABASE] = url
    try:
        yield
    finally:
        if before is None:
            del os.environ[_DATABASE]
        else:
            os.environ[_DATABASE] = before
