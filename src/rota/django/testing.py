"""What is different while Django's tests run: databases have other names, and go when the tests are over."""

from __future__ import annotations

import os
import weakref
from functools import wraps
from typing import Any

import django
from django.db import connections
from django.db.backends.base.creation import BaseDatabaseCreation

from rota.app import Rota
from rota.django.databases import ALIAS

_NAME = "ROTA_DJANGO_TEST_DATABASE"
_apps: weakref.WeakSet[Rota] = weakref.WeakSet()


def close_before_test_databases_go(app: Rota) -> None:
    """PostgreSQL drops none that somebody is connected to. Django tells nobody that it is about to drop one, so it is
    seen to where it does it."""
    _apps.add(app)
    if hasattr(BaseDatabaseCreation.destroy_test_db, "__wrapped__"):
        return
    destroy = BaseDatabaseCreation.destroy_test_db

    @wraps(destroy)
    def destroy_test_db(self: BaseDatabaseCreation, *args: Any, **kwargs: Any) -> None:
        for one in list(_apps):
            one.close()
        destroy(self, *args, **kwargs)

    BaseDatabaseCreation.destroy_test_db = destroy_test_db  # type: ignore[method-assign]


def hand_on_to_children() -> None:
    """A handler in a process of its own reads settings.py again, and there is the name of the real database."""
    os.environ[_NAME] = str(connections.settings[ALIAS]["NAME"])


def set_up_child() -> None:
    django.setup()
    if _NAME in os.environ:
        connections.settings[ALIAS]["NAME"] = os.environ[_NAME]
