"""Adapt rota to Django's tests: databases have other names, and are dropped when the tests are over."""

from __future__ import annotations

import os
import weakref
from functools import wraps

import django
from django.db import connections
from django.db.backends.base.creation import BaseDatabaseCreation

from rota.app import Rota
from rota.django.databases import ALIAS, remove_beside

_NAME = "ROTA_DJANGO_TEST_DATABASE"
_MARK = "_rota_closes_before"
_apps: weakref.WeakSet[Rota] = weakref.WeakSet()


def close_before_test_databases_go(app: Rota) -> None:
    """Close the app's connections before Django drops a test database.

    PostgreSQL refuses to drop a database with connections, and Django has no hook for it: wrap its method.
    """
    _apps.add(app)
    destroy = BaseDatabaseCreation.destroy_test_db
    if hasattr(destroy, _MARK):
        return

    @wraps(destroy)
    def destroy_test_db(
        self: BaseDatabaseCreation,
        old_database_name: str | None = None,
        verbosity: int = 1,
        keepdb: bool = False,
        suffix: str | None = None,
    ) -> None:
        connection = self.connection
        name = (connection.settings_dict if suffix is None else self.get_test_db_clone_settings(suffix))["NAME"]
        for open_app in list(_apps):
            open_app.close()
        destroy(self, old_database_name, verbosity, keepdb, suffix)
        is_of_tests = name != connection.settings_dict["NAME"]  # by now the real database's name again
        if is_of_tests and connection.alias == ALIAS and connection.vendor == "sqlite":
            remove_beside(str(name))

    setattr(destroy_test_db, _MARK, True)
    BaseDatabaseCreation.destroy_test_db = destroy_test_db  # type: ignore[method-assign]


def hand_on_to_children() -> None:
    """Pass the test database's name to child processes: they read settings.py, which names the real one."""
    os.environ[_NAME] = str(connections.settings[ALIAS]["NAME"])


def set_up_child() -> None:
    """Set up Django in a child process, with the test database if there is one."""
    django.setup()
    if _NAME in os.environ:
        connections.settings[ALIAS]["NAME"] = os.environ[_NAME]
