"""The app of a Django project: configured in settings.py, using Django's database and closing its connections."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from rota.app import Rota
from rota.client.client import Client
from rota.config import Config, changed, load_config
from rota.django.databases import database_url
from rota.django.testing import close_before_test_databases_go, hand_on_to_children
from rota.errors import BadConfig


def the_app() -> Rota:
    try:
        if not apps.ready and not apps.loading:  # not started by manage.py: `rota worker rota.django`
            django.setup()
        return _configured_app()
    except ImproperlyConfigured as error:
        hint = "`manage.py rota …` knows the project; elsewhere DJANGO_SETTINGS_MODULE names its settings"
        raise BadConfig(str(error), hint=hint) from error


@cache
def _configured_app() -> Rota:
    options: dict[str, Any] = dict(getattr(settings, "ROTA", {}))
    target = options.pop("app", None)
    if target is None:
        app: Rota = DjangoRota(options)
    elif options:
        raise ImproperlyConfigured('ROTA names an "app" of its own: give that one the other settings')
    else:
        app = import_string(target.replace(":", "."))
    app.around(_connections_closed)
    app.around(_connections_closed_async)
    return app


class DjangoRota(Rota):
    """App on Django's database, unless settings.py, the environment or `rota.toml` name another."""

    def __init__(self, options: dict[str, Any]) -> None:
        config = load_config(options)
        self._djangos: str | None = None
        if config.database_url == Config().database_url and "database_url" not in options:
            self._djangos = database_url()
            config = changed(config, {"database_url": self._djangos})
        super().__init__(config=config)

    @property
    def is_djangos(self) -> bool:
        return self.config.database_url == self._djangos

    def follow(self) -> bool:
        """Switch to Django's database if its name has changed, as it does while tests run; return whether it has."""
        if not self.is_djangos or (url := database_url()) == self._djangos:
            return False
        self._djangos = url
        self._configure(changed(self.config, {"database_url": url}))
        hand_on_to_children()
        return True

    async def open_client(self) -> Client:
        self.follow()
        close_before_test_databases_go(self)
        return await super().open_client()


@contextmanager
def _connections_closed() -> Iterator[None]:
    """Close connections that are too old or broken before and after a handler, as Django does around a request."""
    _close_old_connections()
    try:
        yield
    finally:
        _close_old_connections()


async def _connections_closed_async() -> AsyncIterator[None]:
    """Close old connections in the thread in which coroutines use Django's database."""
    await sync_to_async(_close_old_connections)()
    try:
        yield
    finally:
        await sync_to_async(_close_old_connections)()


def _close_old_connections() -> None:
    """Close old connections, except inside a transaction: Django's own function would close that of a test."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.queries_log.clear()
            connection.close_if_unusable_or_obsolete()
