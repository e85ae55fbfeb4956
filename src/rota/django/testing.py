"""What is different while Django's tests run: databases have other names, and go when the tests are over."""

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
    """PostgreSQL drops none that somebody is connected to. Django tells nobody that it is about to drop one, so it is
    seen to where it does it."""
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
        for one in list(_apps):
            one.close()
        destroy(self, old_database_name, verbosity, keepdb, suffix)
        is_of_tests = name != connection.settings_dict["NAME"]  # which is the real one again
        if is_of_tests and connection.alias == ALIAS and connection.vendor == "sqlite":
            remove_beside(str(name))

    setattr(destroy_test_db, _MARK, True)
    BaseDatabaseCreation.destroy_test_db = destroy_test_db  # type: ignore[method-assign]


def hand_on_to_children() -> None:
    """A handler in a process of its own reads settings.py again, and there is the name of the real database."""
    os.environ[_NAME] = str(connections.settings[ALIAS]["NAME"])


def set_up_child() -> None:
    django.setup()
    if _NAME in os.environ:
        connections.settings[ALIAS]["NAME"] = os.environ[_NAME]
