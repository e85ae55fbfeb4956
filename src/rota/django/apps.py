"""Django app configuration of `"rota.django"`: import the jobs, and migrate rota's tables with Django's."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules

from rota.client.blocking import LoopThread
from rota.django.application import DjangoRota, the_app
from rota.django.databases import ALIAS
from rota.django.testing import set_up_child
from rota.engine.isolation.spawn import preparations
from rota.store import Store, open_database
from rota.store.databases.statements import POSTGRES


class RotaConfig(AppConfig):
    name = "rota.django"
    label = "rota"

    def ready(self) -> None:
        preparations[f"{set_up_child.__module__}:{set_up_child.__name__}"] = None
        the_app()
        autodiscover_modules("jobs")
        if any(it.get("BACKEND", "").startswith("rota.django.") for it in getattr(settings, "TASKS", {}).values()):
            from rota.django import tasks  # imported late: it needs Django 6, or django-tasks

            tasks.install()
        post_migrate.connect(bring_up_to_date, sender=self)


def bring_up_to_date(using: str, **how: Any) -> None:
    """Migrate rota's tables after `manage.py migrate`, and in test databases."""
    app = the_app()
    if "plan" not in how or using != ALIAS or not isinstance(app, DjangoRota):  # `flush` sends no plan
        return
    if app.follow():
        app.close()  # an open client belongs to the previous database
    if app.is_djangos and app.dialect is POSTGRES:
        thread = LoopThread()
        try:
            thread.call(_migrate(app.config.database_url))
        finally:
            thread.stop()


async def _migrate(url: str) -> None:
    store = Store(open_database(url))
    try:
        await store.migrate()
    finally:
        await store.close()
